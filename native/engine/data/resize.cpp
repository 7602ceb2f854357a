// Linear interpolation of bytes in fixed point, with the roundings of OpenCV's cv::resize
// (modules/imgproc/src/imgwarp.cpp: weights of 11 bits, rows before columns).
#include <sparknet/transform.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "../guard.hpp"

namespace {

constexpr int one = 1 << 11;

struct Axis {
    std::vector<int64_t> at;
    std::vector<int> near, far;
};

Axis axis(int64_t from, int64_t to, bool clamp) {
    const double scale = 1.0 / (static_cast<double>(to) / static_cast<double>(from));
    Axis axis;
    for (int64_t i = 0; i < to; ++i) {
        auto rest = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
        auto at = static_cast<int64_t>(std::floor(rest));
        rest -= static_cast<float>(at);
        if (clamp && (at < 0 || at >= from - 1)) {
            at = at < 0 ? 0 : from - 1;
            rest = 0;
        }
        axis.at.push_back(at);
        axis.near.push_back(static_cast<int>(std::lrint((1.0F - rest) * one)));
        axis.far.push_back(static_cast<int>(std::lrint(rest * one)));
    }
    return axis;
}

// One row of the input, as wide as the output.
void widen(int* out, const uint8_t* in, const Axis& columns, int64_t from, int64_t channels) {
    for (size_t i = 0; i < columns.at.size(); ++i) {
        const int64_t at = columns.at[i], next = std::min(at + 1, from - 1);
        for (int64_t c = 0; c < channels; ++c)
            *out++ =
                in[at * channels + c] * columns.near[i] + in[next * channels + c] * columns.far[i];
    }
}

// OpenCV averages where both sides are halved.
void halve(uint8_t* out, int64_t height, int64_t width, const uint8_t* in, int64_t channels) {
    const int64_t stride = 2 * width * channels;
    for (int64_t h = 0; h < height; ++h)
        for (int64_t w = 0; w < width; ++w)
            for (int64_t c = 0; c < channels; ++c) {
                const uint8_t* four = in + 2 * h * stride + 2 * w * channels + c;
                const int sum = four[0] + four[channels] + four[stride] + four[stride + channels];
                *out++ = static_cast<uint8_t>((sum + 2) >> 2);
            }
}

void resize(uint8_t* out, int64_t height, int64_t width, const uint8_t* in, int64_t in_height,
            int64_t in_width, int64_t channels) {
    const Axis columns = axis(in_width, width, true), rows = axis(in_height, height, false);
    const auto length = static_cast<size_t>(width * channels);
    std::vector<int> lines[2] = {std::vector<int>(length), std::vector<int>(length)};
    int64_t held[2] = {-1, -1};
    // Row r of the input lies in line r % 2 while it is needed.
    const auto line = [&](int64_t row) {
        row = std::clamp<int64_t>(row, 0, in_height - 1);
        const auto slot = static_cast<size_t>(row % 2);
        if (held[slot] != row) {
            widen(lines[slot].data(), in + row * in_width * channels, columns, in_width, channels);
            held[slot] = row;
        }
        return lines[slot].data();
    };
    for (int64_t h = 0; h < height; ++h) {
        const auto i = static_cast<size_t>(h);
        const int *upper = line(rows.at[i]), *lower = line(rows.at[i] + 1);
        for (size_t w = 0; w < length; ++w) {
            const int sum =
                ((rows.near[i] * (upper[w] >> 4)) >> 16) + ((rows.far[i] * (lower[w] >> 4)) >> 16);
            *out++ = static_cast<uint8_t>((sum + 2) >> 2);
        }
    }
}

}  // namespace

sn_status sn_resize_image(uint8_t* out, int64_t height, int64_t width, const uint8_t* in,
                          int64_t in_height, int64_t in_width, int64_t channels) {
    if (height < 1 || width < 1 || in_height < 1 || in_width < 1 || channels < 1)
        return sn_fail(SN_ERROR_ARRAY, "an image without pixels cannot be resized");
    return sn::guarded([&] {
        if (height == in_height && width == in_width)
            std::memcpy(out, in, static_cast<size_t>(height * width * channels));
        else if (2 * height == in_height && 2 * width == in_width)
            halve(out, height, width, in, channels);
        else
            resize(out, height, width, in, in_height, in_width, channels);
    });
}
