// The functions that loops of our own compute at the end of a pass, sixteen values at once.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined registers of its own header for a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include "loop_ending.hpp"

namespace sn {

namespace endings {
// e^x; infinity above the largest float.  As fast_exp is computed.
[[gnu::always_inline]] inline __m512 power_of_e(__m512 x) {
    const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504F)),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375F), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4F), r);
    __m512 p = _mm512_set1_ps(1.9875691500e-4F);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1F));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1F));
    p = _mm512_fmadd_ps(_mm512_mul_ps(p, r), r, r);
    return _mm512_scalef_ps(_mm512_add_ps(p, _mm512_set1_ps(1.0F)), n);
}

// x / (1 + e^(by x)); -x of 89 and more gives zero.
[[gnu::always_inline]] inline __m512 swish(__m512 x, __m512 by) {
    const __m512 one = _mm512_set1_ps(1.0F);
    return _mm512_div_ps(x, _mm512_add_ps(one, power_of_e(_mm512_mul_ps(by, x))));
}

// max and min return their second operand where one is no number.
[[gnu::always_inline]] inline __m512 between(__m512 x, __m512 least, __m512 most) {
    return _mm512_min_ps(most, _mm512_max_ps(least, x));
}
}  // namespace endings

// In place, of some vectors that lie in registers.
template <int count>
[[gnu::always_inline]] inline void finish(const LoopEnding& end, __m512 (&values)[count]) {
    const __m512 alpha = _mm512_set1_ps(end.alpha), beta = _mm512_set1_ps(end.beta);
    switch (end.kind) {
        case LoopEnding::Kind::none:
            break;
        case LoopEnding::Kind::between:
#pragma GCC unroll 16
            for (int i = 0; i < count; ++i) values[i] = endings::between(values[i], alpha, beta);
            break;
        case LoopEnding::Kind::swish: {
            const __m512 by = _mm512_set1_ps(-end.alpha);
#pragma GCC unroll 16
            for (int i = 0; i < count; ++i) values[i] = endings::swish(values[i], by);
            break;
        }
        case LoopEnding::Kind::hard_swish:
#pragma GCC unroll 16
            for (int i = 0; i < count; ++i) {
                const __m512 gate = _mm512_fmadd_ps(alpha, values[i], beta);
                values[i] = _mm512_mul_ps(
                    values[i], endings::between(gate, _mm512_setzero_ps(), _mm512_set1_ps(1.0F)));
            }
    }
}

}  // namespace sn
