// Separable resampling of images by tables of taps.
#include <sparknet/transform.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "../guard.hpp"

namespace {

bool within(const sn_axis& axis, int64_t size) {
    return std::all_of(axis.at, axis.at + axis.size * axis.taps,
                       [=](int32_t at) { return at >= 0 && at < size; });
}

// One row of the input, as wide as the output; the compiler knows the usual numbers.
template <class T, class Channels, class Taps>
void widen(float* out, const T* in, const sn_axis& columns, Channels channels, Taps taps,
           float low) {
    const int32_t* at = columns.at;
    const float* weights = columns.weights;
    for (int64_t i = 0; i < columns.size; ++i, at += taps, weights += taps)
        for (int64_t c = 0; c < channels; ++c) {
            float sum = 0;
            for (int64_t k = 0; k < taps; ++k)
                sum += weights[k] * (static_cast<float>(in[at[k] * channels + c]) - low);
            *out++ = sum;
        }
}

template <class T, class Channels>
void widen(float* out, const T* in, const sn_axis& columns, Channels channels, float low) {
    if (columns.taps == 2)
        widen(out, in, columns, channels, std::integral_constant<int64_t, 2>(), low);
    else
        widen(out, in, columns, channels, columns.taps, low);
}

template <class T>
void widen(float* out, const T* in, const sn_axis& columns, int64_t channels, float low) {
    if (channels == 3)
        widen(out, in, columns, std::integral_constant<int64_t, 3>(), low);
    else if (channels == 1)
        widen(out, in, columns, std::integral_constant<int64_t, 1>(), low);
    else
        widen<T, int64_t>(out, in, columns, channels, low);
}

// The input's rows that the next output needs, widened; each is widened once.
template <class T>
class Lines {
   public:
    Lines(const sn_resample& how, const T* in, int64_t in_width, int64_t channels, float low)
        : how_(how),
          in_(in),
          stride_(in_width * channels),
          channels_(channels),
          low_(low),
          length_(static_cast<size_t>(how.columns.size * channels)),
          lines_(static_cast<size_t>(how.rows.taps), std::vector<float>(length_)),
          held_(static_cast<size_t>(how.rows.taps), -1) {}

    size_t length() const { return length_; }

    // The taps of an output row are neighbours, or the same row again at the border.
    const float* at(int64_t row) {
        const auto slot = static_cast<size_t>(row % how_.rows.taps);
        if (held_[slot] != row) {
            widen(lines_[slot].data(), in_ + row * stride_, how_.columns, channels_, low_);
            held_[slot] = row;
        }
        return lines_[slot].data();
    }

   private:
    const sn_resample& how_;
    const T* in_;
    int64_t stride_, channels_;
    float low_;
    size_t length_;
    std::vector<std::vector<float>> lines_;
    std::vector<int64_t> held_;
};

void put(float* out, const std::vector<float>& sums, float low, float high) {
    for (size_t i = 0; i < sums.size(); ++i) out[i] = std::clamp(sums[i] + low, low, high);
}

void put(float* out, const std::vector<float>& sums) {
    std::copy(sums.begin(), sums.end(), out);
}

void put(uint8_t* out, const std::vector<float>& sums) {
    for (size_t i = 0; i < sums.size(); ++i)
        out[i] = static_cast<uint8_t>(std::clamp(std::nearbyint(sums[i]), 0.0F, 255.0F));
}

template <class Out, class T>
void resample(Out* out, const sn_resample& how, const T* in, int64_t in_height, int64_t in_width,
              int64_t channels) {
    float low = 0, high = 0;
    if (how.bounded != 0) {
        const auto ends = std::minmax_element(in, in + in_height * in_width * channels);
        low = static_cast<float>(*ends.first), high = static_cast<float>(*ends.second);
    }
    Lines<T> lines(how, in, in_width, channels, low);
    std::vector<float> sums(lines.length());
    for (int64_t h = 0; h < how.rows.size; ++h) {
        std::fill(sums.begin(), sums.end(), 0.0F);
        for (int64_t k = 0; k < how.rows.taps; ++k) {
            const float weight = how.rows.weights[h * how.rows.taps + k];
            const float* line = lines.at(how.rows.at[h * how.rows.taps + k]);
            for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * line[i];
        }
        if constexpr (std::is_same_v<Out, float>) {
            if (how.bounded != 0)
                put(out, sums, low, high);
            else
                put(out, sums);
        } else {
            put(out, sums);
        }
        out += sums.size();
    }
}

template <class Out>
void resample(Out* out, const sn_resample& how, const void* in, sn_record_kind kind,
              int64_t in_height, int64_t in_width, int64_t channels) {
    if (kind == SN_RECORD_BYTES)
        resample(out, how, static_cast<const uint8_t*>(in), in_height, in_width, channels);
    else
        resample(out, how, static_cast<const float*>(in), in_height, in_width, channels);
}

}  // namespace

sn_status sn_resample_image(void* out, sn_record_kind out_kind, const sn_resample* how,
                            const void* in, sn_record_kind in_kind, int64_t in_height,
                            int64_t in_width, int64_t channels) {
    if (how->rows.size < 1 || how->columns.size < 1 || how->rows.taps < 1 ||
        how->columns.taps < 1 || in_height < 1 || in_width < 1 || channels < 1)
        return sn_fail(SN_ERROR_ARRAY, "an image without pixels cannot be resized");
    if (!within(how->rows, in_height) || !within(how->columns, in_width))
        return sn_fail(SN_ERROR_INDEX, "an image cannot be resized by places outside it");
    return sn::guarded([&] {
        if (out_kind == SN_RECORD_BYTES)
            resample(static_cast<uint8_t*>(out), *how, in, in_kind, in_height, in_width, channels);
        else
            resample(static_cast<float*>(out), *how, in, in_kind, in_height, in_width, channels);
    });
}
