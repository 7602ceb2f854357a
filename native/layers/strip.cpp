#include "strip.hpp"

extern "C" {
#include "../ndarray/kernel.h"
}

namespace sn {

namespace {
#define SN_LANES _Pragma("omp simd") for (int64_t l = 0; l < width; ++l)
#define SN_INLINE [[gnu::always_inline]] inline

// Mean and squared distances from it: the values are in the nearest cache the second time.
template <class T>
SN_INLINE void moments(const Strip<T>& s, int64_t width, float* mean, float* squares) {
    float sum[Strip<T>::most] = {}, square[Strip<T>::most] = {};
    for (int64_t r = 0; r < s.rows; ++r) SN_LANES sum[l] += s.x[r * s.stride + l];
    SN_LANES sum[l] /= static_cast<float>(s.rows);
    for (int64_t r = 0; r < s.rows; ++r) SN_LANES {
            const float apart = s.x[r * s.stride + l] - sum[l];
            square[l] += apart * apart;
        }
    SN_LANES mean[l] = sum[l], squares[l] = square[l];
}

template <class T>
SN_INLINE float passed(const Strip<T>& s, float x, float dy, int64_t l) {
    const float y = x * s.factor[l] + s.shift[l], below = dy * s.least;
    return y > 0 ? dy : below;
}

template <class T>
SN_INLINE void products(const Strip<T>& s, int64_t width, float* sums, float* with_x) {
    float sum[Strip<T>::most] = {}, product[Strip<T>::most] = {};
    for (int64_t r = 0; r < s.rows; ++r) SN_LANES {
            const float x = s.x[r * s.stride + l], g = passed(s, x, s.dy[r * s.stride + l], l);
            sum[l] += g;
            product[l] += g * (x - s.mean[l]);
        }
    SN_LANES sums[l] = sum[l], with_x[l] = product[l];
}

template <class T>
SN_INLINE void scale(const Strip<T>& s, int64_t width) {
    for (int64_t r = 0; r < s.rows; ++r) SN_LANES {
            const float y = s.x[r * s.stride + l] * s.factor[l] + s.shift[l];
            const float below = y * s.least;
            s.to[r * s.stride + l] = y > 0 ? y : below;
        }
}

template <class T>
SN_INLINE void differentiate(const Strip<T>& s, int64_t width) {
    for (int64_t r = 0; r < s.rows; ++r) SN_LANES {
            const float x = s.x[r * s.stride + l], g = passed(s, x, s.dy[r * s.stride + l], l);
            s.to[r * s.stride + l] = s.factor[l] * (g - s.middle[l] - (x - s.mean[l]) * s.slant[l]);
        }
}
}  // namespace

// Each for sixteen lanes, which fill a vector, and for what is left over.
template <class T>
SN_KERNEL void strip_moments(const Strip<T>& s, float* mean, float* squares) {
    s.width == Strip<T>::most ? moments(s, Strip<T>::most, mean, squares)
                              : moments(s, s.width, mean, squares);
}

template <class T>
SN_KERNEL void strip_products(const Strip<T>& s, float* sums, float* with_x) {
    s.width == Strip<T>::most ? products(s, Strip<T>::most, sums, with_x)
                              : products(s, s.width, sums, with_x);
}

template <class T>
SN_KERNEL void strip_scale(const Strip<T>& s) {
    s.width == Strip<T>::most ? scale(s, Strip<T>::most) : scale(s, s.width);
}

template <class T>
SN_KERNEL void strip_differentiate(const Strip<T>& s) {
    s.width == Strip<T>::most ? differentiate(s, Strip<T>::most) : differentiate(s, s.width);
}

#define SN_STRIPS(T)                                               \
    template void strip_moments(const Strip<T>&, float*, float*);  \
    template void strip_products(const Strip<T>&, float*, float*); \
    template void strip_scale(const Strip<T>&);                    \
    template void strip_differentiate(const Strip<T>&);
SN_STRIPS(float)
SN_STRIPS(BFloat16)

}  // namespace sn
