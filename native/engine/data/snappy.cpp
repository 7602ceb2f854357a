// Snappy, the compression of LevelDB's blocks: decoding only (snappy: format_description.txt).
#include <sparknet/transform.h>

#include <cstring>

#include "../../ndarray/failure.h"

namespace {

using Bytes = const uint8_t*;

uint64_t little_endian(Bytes at, int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; ++i) value |= static_cast<uint64_t>(at[i]) << (8 * i);
    return value;
}

sn_status damaged(const char* what) {
    return sn_fail(SN_ERROR_ARRAY, "%s", what);
}

sn_status too_long(int64_t size) {
    return sn_fail(SN_ERROR_ARRAY, "more than the %lld bytes announced",
                   static_cast<long long>(size));
}

}  // namespace

sn_status sn_snappy_decode(uint8_t* out, int64_t size, const uint8_t* in, int64_t in_size) {
    const Bytes end = in + in_size;
    int64_t made = 0;
    while (in < end) {
        const uint8_t tag = *in++;
        if ((tag & 3) == 0) {
            int64_t length = tag >> 2;
            if (length >= 60) {
                const int extra = static_cast<int>(length) - 59;
                if (end - in < extra) return damaged("a literal is cut short");
                length = static_cast<int64_t>(little_endian(in, extra));
                in += extra;
            }
            ++length;
            if (end - in < length) return damaged("a literal is cut short");
            if (length > size - made) return too_long(size);
            std::memcpy(out + made, in, static_cast<size_t>(length));
            in += length;
            made += length;
            continue;
        }
        constexpr int widths[] = {0, 1, 2, 4};
        const int extra = widths[tag & 3];
        if (end - in < extra) return damaged("a copy is cut short");
        auto offset = static_cast<int64_t>(little_endian(in, extra));
        in += extra;
        int64_t length = (tag >> 2) + 1;
        if ((tag & 3) == 1) {
            offset |= static_cast<int64_t>(tag >> 5) << 8;
            length = ((tag >> 2) & 7) + 4;
        }
        if (offset == 0 || offset > made)
            return sn_fail(SN_ERROR_ARRAY, "a copy from %lld bytes back, behind %lld",
                           static_cast<long long>(offset), static_cast<long long>(made));
        if (length > size - made) return too_long(size);
        // The two may overlap: a short pattern repeats itself.
        for (int64_t i = 0; i < length; ++i, ++made) out[made] = out[made - offset];
    }
    if (made != size)
        return sn_fail(SN_ERROR_ARRAY, "%lld bytes instead of %lld", static_cast<long long>(made),
                       static_cast<long long>(size));
    return SN_OK;
}
