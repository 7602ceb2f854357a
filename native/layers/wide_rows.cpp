#include "wide_rows.hpp"

#include <algorithm>

extern "C" {
#include "../ndarray/kernel.h"
}

namespace sn {

template <class T>
SN_KERNEL void wide_moments(const WideRows<T>& all, float* mean, float* squares) {
    const int64_t width = all.width;
    const auto count = static_cast<float>(all.rows);
    SN_EACH(l, width) mean[l] = squares[l] = 0;
    for (int64_t r = 0; r < all.rows; ++r) {
        const T* x = all.x + r * width;
        SN_EACH(l, width) mean[l] += x[l];
    }
    SN_EACH(l, width) mean[l] /= count;
    for (int64_t r = 0; r < all.rows; ++r) {
        const T* x = all.x + r * width;
        SN_EACH(l, width) {
            const float apart = x[l] - mean[l];
            squares[l] += apart * apart;
        }
    }
}

template <class T>
SN_KERNEL void wide_products(const WideRows<T>& all, float* sums, float* with_x) {
    const int64_t width = all.width;
    const float *factor = all.factor, *shift = all.shift, *mean = all.mean;
    const float least = all.least;
    SN_EACH(l, width) sums[l] = with_x[l] = 0;
    for (int64_t r = 0; r < all.rows; ++r) {
        const T *x = all.x + r * width, *dy = all.dy + r * width;
        SN_EACH(l, width) {
            const float y = x[l] * factor[l] + shift[l], slope = dy[l], below = slope * least;
            const float g = y > 0 ? slope : below;
            sums[l] += g;
            with_x[l] += g * (x[l] - mean[l]);
        }
    }
}

template <class T>
SN_KERNEL void wide_scale(const WideRows<T>& all) {
    const int64_t width = all.width;
    const float *factor = all.factor, *shift = all.shift, least = all.least;
    for (int64_t r = 0; r < all.rows; ++r) {
        const T* x = all.x + r * width;
        T* to = all.to + r * width;
        SN_EACH(l, width) {
            const float y = x[l] * factor[l] + shift[l], below = y * least;
            to[l] = y > 0 ? y : below;
        }
    }
}

template <class T>
SN_KERNEL void wide_differentiate(const WideRows<T>& all) {
    const int64_t width = all.width;
    const float *factor = all.factor, *shift = all.shift, *mean = all.mean;
    const float *middle = all.middle, *slant = all.slant, least = all.least;
    for (int64_t r = 0; r < all.rows; ++r) {
        const T *x = all.x + r * width, *dy = all.dy + r * width;
        T* to = all.to + r * width;
        SN_EACH(l, width) {
            const float y = x[l] * factor[l] + shift[l], slope = dy[l], below = slope * least;
            const float g = y > 0 ? slope : below;
            to[l] = factor[l] * (g - middle[l] - (x[l] - mean[l]) * slant[l]);
        }
    }
}

#define SN_WIDE_ROWS(T)                                              \
    template void wide_moments(const WideRows<T>&, float*, float*);  \
    template void wide_products(const WideRows<T>&, float*, float*); \
    template void wide_scale(const WideRows<T>&);                    \
    template void wide_differentiate(const WideRows<T>&);
SN_WIDE_ROWS(float)
SN_WIDE_ROWS(BFloat16)

}  // namespace sn
