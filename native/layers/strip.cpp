#include "strip.hpp"

extern "C" {
#include "../ndarray/kernel.h"
}

namespace sn {

namespace {
#define SN_LANES _Pragma("omp simd") for (int64_t l = 0; l < width; ++l)
#define SN_INLINE [[gnu::always_inline]] inline

// Mean and squared distances from it: the values are in the nearest cache the second time.
SN_INLINE void moments(const Strip& s, int64_t width, float* mean, float* squares) {
    float sum[Strip::most] = {}, square[Strip::most] = {};
    for (int64_t r = 0; r < s.rows; ++r) SN_LANES sum[l] += s.x[r * s.stride + l];
    SN_LANES sum[l] /= static_cast<float>(s.rows);
    for (int64_t r = 0; r < s.rows; ++r) SN_LANES {
            const float apart = s.x[r * s.stride + l] - sum[l];
            square[l] += apart * apart;
        }
    SN_LANES mean[l] = sum[l], squares[l] = square[l];
}

SN_INLINE float passed(const Strip& s, float x, float dy, int64_t l) {
    const float y = x * s.factor[l] + s.shift[l], below = dy * s.least;
    return y > 0 ? dy : below;
}

SN_INLINE void products(const Strip& s, int64_t width, float* sums, float* with_x) {
    float sum[Strip::most] = {}, product[Strip::most] = {};
    for (int64_t r = 0; r < s.rows; ++r) SN_LANES {
            const float x = s.x[r * s.stride + l], g = passed(s, x, s.dy[r * s.stride + l], l);
            sum[l] += g;
            product[l] += g * (x - s.mean[l]);
        }
    SN_LANES sums[l] = sum[l], with_x[l] = product[l];
}

SN_INLINE void scale(const Strip& s, int64_t width) {
    for (int64_t r = 0; r < s.rows; ++r) SN_LANES {
            const float y = s.x[r * s.stride + l] * s.factor[l] + s.shift[l];
            const float below = y * s.least;
            s.to[r * s.stride + l] = y > 0 ? y : below;
        }
}

SN_INLINE void differentiate(const Strip& s, int64_t width) {
    for (int64_t r = 0; r < s.rows; ++r) SN_LANES {
            const float x = s.x[r * s.stride + l], g = passed(s, x, s.dy[r * s.stride + l], l);
            s.to[r * s.stride + l] = s.factor[l] * (g - s.middle[l] - (x - s.mean[l]) * s.slant[l]);
        }
}
}  // namespace

// Each for sixteen lanes, which fill a vector, and for what is left over.
SN_KERNEL void strip_moments(const Strip& s, float* mean, float* squares) {
    s.width == Strip::most ? moments(s, Strip::most, mean, squares)
                           : moments(s, s.width, mean, squares);
}

SN_KERNEL void strip_products(const Strip& s, float* sums, float* with_x) {
    s.width == Strip::most ? products(s, Strip::most, sums, with_x)
                           : products(s, s.width, sums, with_x);
}

SN_KERNEL void strip_scale(const Strip& s) {
    s.width == Strip::most ? scale(s, Strip::most) : scale(s, s.width);
}

SN_KERNEL void strip_differentiate(const Strip& s) {
    s.width == Strip::most ? differentiate(s, Strip::most) : differentiate(s, s.width);
}

}  // namespace sn
