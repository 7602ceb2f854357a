#include "wide_rows.hpp"

#include <algorithm>

extern "C" {
#include "../ndarray/kernel.h"
}

namespace sn {

SN_KERNEL void wide_moments(const WideRows& all, float* mean, float* squares) {
    const int64_t width = all.width;
    const auto count = static_cast<float>(all.rows);
    SN_EACH(l, width) mean[l] = squares[l] = 0;
    for (int64_t r = 0; r < all.rows; ++r) {
        const float* x = all.x + r * width;
        SN_EACH(l, width) mean[l] += x[l];
    }
    SN_EACH(l, width) mean[l] /= count;
    for (int64_t r = 0; r < all.rows; ++r) {
        const float* x = all.x + r * width;
        SN_EACH(l, width) squares[l] += (x[l] - mean[l]) * (x[l] - mean[l]);
    }
}

SN_KERNEL void wide_products(const WideRows& all, float* sums, float* with_x) {
    const int64_t width = all.width;
    const float *factor = all.factor, *shift = all.shift, *mean = all.mean;
    const float least = all.least;
    SN_EACH(l, width) sums[l] = with_x[l] = 0;
    for (int64_t r = 0; r < all.rows; ++r) {
        const float *x = all.x + r * width, *dy = all.dy + r * width;
        SN_EACH(l, width) {
            const float y = x[l] * factor[l] + shift[l], below = dy[l] * least;
            const float g = y > 0 ? dy[l] : below;
            sums[l] += g;
            with_x[l] += g * (x[l] - mean[l]);
        }
    }
}

SN_KERNEL void wide_scale(const WideRows& all) {
    const int64_t width = all.width;
    const float *factor = all.factor, *shift = all.shift, least = all.least;
    for (int64_t r = 0; r < all.rows; ++r) {
        const float* x = all.x + r * width;
        float* to = all.to + r * width;
        SN_EACH(l, width) {
            const float y = x[l] * factor[l] + shift[l], below = y * least;
            to[l] = y > 0 ? y : below;
        }
    }
}

SN_KERNEL void wide_differentiate(const WideRows& all) {
    const int64_t width = all.width;
    const float *factor = all.factor, *shift = all.shift, *mean = all.mean;
    const float *middle = all.middle, *slant = all.slant, least = all.least;
    for (int64_t r = 0; r < all.rows; ++r) {
        const float *x = all.x + r * width, *dy = all.dy + r * width;
        float* to = all.to + r * width;
        SN_EACH(l, width) {
            const float y = x[l] * factor[l] + shift[l], below = dy[l] * least;
            const float g = y > 0 ? dy[l] : below;
            to[l] = factor[l] * (g - middle[l] - (x[l] - mean[l]) * slant[l]);
        }
    }
}

}  // namespace sn
