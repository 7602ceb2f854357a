// One pass from records to a batch (Caffe: data_transformer.cpp, Transform).
#include <sparknet/transform.h>

#include <cstring>
#include <type_traits>

#include "../../ndarray/failure.h"
#include "../parallel.hpp"
#include "../random.hpp"

namespace {

template <class T>
T load(const char* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

// A row of pixels that are `step` bytes apart; the compiler knows the step of dense rows.
template <class T, class Step, class Mean>
void row(float* out, const char* in, Step step, int64_t n, Mean mean, float scale, bool mirror) {
    if (mirror) {
        float* last = out + n - 1;
        for (int64_t i = 0; i < n; ++i)
            last[-i] = (static_cast<float>(load<T>(in + i * step)) - mean(i)) * scale;
    } else {
        for (int64_t i = 0; i < n; ++i)
            out[i] = (static_cast<float>(load<T>(in + i * step)) - mean(i)) * scale;
    }
}

struct Place {
    int64_t top, left;
    bool mirror;
};

template <class T, class Step>
void item(float* out, const sn_transform& how, const sn_record& record, Place place, Step step) {
    const auto* base = static_cast<const char*>(record.values);
    // A mean of the crop's size is subtracted after the crop.
    const bool after = how.mean_height == how.height && how.mean_width == how.width;
    const int64_t top = after ? 0 : place.top, left = after ? 0 : place.left;
    for (int64_t c = 0; c < how.channels; ++c) {
        const float value = how.mean_values[c], scale = how.scales[c];
        for (int64_t h = 0; h < how.height; ++h) {
            const char* in = base + c * record.channel_step + (place.top + h) * record.row_step +
                             place.left * record.column_step;
            if (how.mean != nullptr) {
                const float* mean =
                    how.mean + (c * how.mean_height + top + h) * how.mean_width + left;
                row<T>(
                    out, in, step, how.width, [=](int64_t i) { return mean[i]; }, scale,
                    place.mirror);
            } else {
                row<T>(
                    out, in, step, how.width, [=](int64_t) { return value; }, scale, place.mirror);
            }
            out += how.width;
        }
    }
}

template <class T>
void item(float* out, const sn_transform& how, const sn_record& record, Place place) {
    constexpr auto dense = static_cast<int64_t>(sizeof(T));
    if (record.column_step == dense)
        item<T>(out, how, record, place, std::integral_constant<int64_t, dense>());
    else
        item<T>(out, how, record, place, record.column_step);
}

// The random numbers of an item depend only on its number.
Place choose(const sn_transform& how, const sn_record& record, const sn::Random::Draw& draw,
             uint64_t number) {
    const int64_t rows = record.height - how.height, columns = record.width - how.width;
    Place place{rows / 2, columns / 2, how.mirror != 0 && draw.bits(3 * number) >> 63 != 0};
    if (how.random_crop != 0) {
        const auto below = [&](uint64_t which, int64_t bound) {
            return static_cast<int64_t>(
                (draw.bits(3 * number + which) >> 32) * static_cast<uint64_t>(bound + 1) >> 32);
        };
        place.top = below(1, rows);
        place.left = below(2, columns);
    }
    return place;
}

sn_status check(const sn_transform& how, const sn_record& record) {
    const auto say = [&](const char* what, int64_t c, int64_t h, int64_t w) {
        return sn_fail(SN_ERROR_ARRAY, "is %lld x %lld x %lld; %s %lld x %lld x %lld",
                       static_cast<long long>(record.channels),
                       static_cast<long long>(record.height), static_cast<long long>(record.width),
                       what, static_cast<long long>(c), static_cast<long long>(h),
                       static_cast<long long>(w));
    };
    if (record.kind != SN_RECORD_BYTES && record.kind != SN_RECORD_FLOATS)
        return sn_fail(SN_ERROR_ARRAY, "has not been decoded");
    const bool exact = record.height == how.height && record.width == how.width;
    const bool fits = record.height >= how.height && record.width >= how.width;
    if (record.channels != how.channels || !(how.crop != 0 ? fits : exact))
        return say(how.crop != 0 ? "the crop is" : "others of its batch are", how.channels,
                   how.height, how.width);
    const auto is_mean = [&](int64_t height, int64_t width) {
        return height == how.mean_height && width == how.mean_width;
    };
    if (how.mean != nullptr && !is_mean(record.height, record.width) &&
        !is_mean(how.height, how.width))
        return say("the mean is", how.channels, how.mean_height, how.mean_width);
    return SN_OK;
}

}  // namespace

sn_status sn_transform_records(float* out, int64_t* failed, const sn_transform* how, int64_t count,
                               const sn_record* records, uint64_t first, int threaded) {
    for (int64_t i = 0; i < count; ++i) {
        *failed = i;
        const sn_status status = check(*how, records[i]);
        if (status != SN_OK) return status;
    }
    const int64_t size = how->channels * how->height * how->width;
    const sn::Random::Draw draw = sn::Random(how->seed).draw();
    const auto make = [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const Place place = choose(*how, records[i], draw, first + static_cast<uint64_t>(i));
            if (records[i].kind == SN_RECORD_BYTES)
                item<uint8_t>(out + i * size, *how, records[i], place);
            else
                item<float>(out + i * size, *how, records[i], place);
        }
    };
    if (threaded != 0)
        sn::parallel(count, size, make);
    else
        make(0, count);
    return SN_OK;
}
