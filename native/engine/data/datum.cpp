// Where the values of a serialized Datum lie (proto/caffe.proto), without copying them.
#include <sparknet/transform.h>

#include "../../ndarray/failure.h"

namespace {

constexpr int64_t largest = INT32_MAX;

enum Field { channels = 1, height, width, data, label, float_data, encoded };
enum Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Reader {
    const uint8_t *at, *end;

    bool number(uint64_t& out) {
        out = 0;
        for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
            const uint8_t byte = *at++;
            if (shift < 64) out |= static_cast<uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return true;
        }
        return false;
    }
    bool take(uint64_t size, const uint8_t*& out) {
        if (size > static_cast<uint64_t>(end - at)) return false;
        out = at;
        at += size;
        return true;
    }
};

// The floats found so far, as long as they lie at equal distances.
struct Floats {
    const uint8_t* first = nullptr;
    int64_t count = 0, step = 0;
    bool scattered = false;

    void add(const uint8_t* value, int64_t many, int64_t apart) {
        if (many == 0) return;
        const bool follows = count > 0 && step == apart && value == first + count * step;
        if (count == 0) {
            first = value;
            step = apart;
        } else if (!follows || apart != 5) {
            scattered = true;
        }
        count += many;
    }
};

struct Datum {
    int32_t shape[3] = {0, 0, 0}, mark = 0;
    bool compressed = false;
    const uint8_t* pixels = nullptr;
    int64_t size = 0;
    Floats floats;

    void set(uint64_t field, uint64_t value) {
        const auto number = static_cast<int32_t>(static_cast<uint32_t>(value));
        if (field >= channels && field <= width) shape[field - channels] = number;
        if (field == label) mark = number;
        if (field == encoded) compressed = value != 0;
    }
    bool set(uint64_t field, const uint8_t* value, uint64_t length) {
        if (field == data) {
            pixels = value;
            size = static_cast<int64_t>(length);
        }
        if (field != float_data) return true;
        floats.add(value, static_cast<int64_t>(length / sizeof(float)), sizeof(float));
        return length % sizeof(float) == 0;
    }
};

bool read(Reader in, Datum& to) {
    while (in.at < in.end) {
        uint64_t tag = 0, value = 0;
        const uint8_t* place = nullptr;
        if (!in.number(tag) || tag >> 3 == 0 || tag >> 32 != 0) return false;
        const uint64_t field = tag >> 3;
        switch (tag & 7) {
            case varint:
                if (!in.number(value)) return false;
                to.set(field, value);
                break;
            case bytes:
                if (!in.number(value) || !in.take(value, place)) return false;
                if (!to.set(field, place, value)) return false;
                break;
            case fixed32:
                if (!in.take(4, place)) return false;
                if (field == float_data) to.floats.add(place, 1, 5);
                break;
            case fixed64:
                if (!in.take(8, place)) return false;
                break;
            default:
                return false;
        }
    }
    return true;
}

sn_status place(sn_record& out, const Datum& datum) {
    const int64_t c = datum.shape[0], h = datum.shape[1], w = datum.shape[2];
    out = {};
    out.label = datum.mark;
    out.channels = c;
    out.height = h;
    out.width = w;
    out.values = datum.pixels;
    out.size = datum.size;
    if (datum.compressed) {
        out.kind = SN_RECORD_ENCODED;
        return SN_OK;
    }
    if (datum.size == 0 && datum.floats.count > 0) {
        out.kind = datum.floats.scattered ? SN_RECORD_SCATTERED : SN_RECORD_FLOATS;
        out.values = datum.floats.first;
        out.size = datum.floats.count;
        out.column_step = datum.floats.step;
    } else {
        out.column_step = 1;
    }
    // Each factor is below 2^31: compare before the product can overflow.
    const bool sane = c > 0 && h > 0 && w > 0 && h * w <= largest && h * w * c <= largest;
    if (!sane || out.size != c * h * w)
        return sn_fail(SN_ERROR_ARRAY, "says %lld x %lld x %lld and holds %lld values",
                       static_cast<long long>(c), static_cast<long long>(h),
                       static_cast<long long>(w), static_cast<long long>(out.size));
    out.row_step = w * out.column_step;
    out.channel_step = h * out.row_step;
    return SN_OK;
}

}  // namespace

sn_status sn_scan_datums(sn_record* out, int64_t* failed, const void* memory, int64_t size,
                         int64_t count, const int64_t* offsets, const int64_t* sizes) {
    const auto* base = static_cast<const uint8_t*>(memory);
    for (int64_t i = 0; i < count; ++i) {
        *failed = i;
        if (offsets[i] < 0 || sizes[i] < 0 || offsets[i] > size || sizes[i] > size - offsets[i])
            return sn_fail(SN_ERROR_INDEX, "a record outside its memory");
        Datum datum;
        const uint8_t* begin = base + offsets[i];
        if (!read({begin, begin + sizes[i]}, datum)) return sn_fail(SN_ERROR_ARRAY, "is no Datum");
        const sn_status status = place(out[i], datum);
        if (status != SN_OK) return status;
    }
    return SN_OK;
}
