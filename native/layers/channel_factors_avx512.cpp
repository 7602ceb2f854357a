#include <algorithm>

#include "channel_factors.hpp"

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined registers of its own header for a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

namespace sn {

namespace {
constexpr int64_t lanes = 16, strip = 2 * lanes;

inline __m512 widened(__m256i words) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

template <bool shifts>
inline __m512i strip_of(const ChannelFactors& by, int64_t at, __m512i words) {
    __m512 low = widened(_mm512_castsi512_si256(words));
    __m512 high = widened(_mm512_extracti64x4_epi64(words, 1));
    low = _mm512_mul_ps(low, _mm512_loadu_ps(by.factors + at));
    high = _mm512_mul_ps(high, _mm512_loadu_ps(by.factors + at + lanes));
    if (shifts) {
        low = _mm512_add_ps(low, _mm512_loadu_ps(by.shifts + at));
        high = _mm512_add_ps(high, _mm512_loadu_ps(by.shifts + at + lanes));
    }
    const __m512bh joined = _mm512_cvtne2ps_pbh(high, low);
    __m512i made;
    __builtin_memcpy(&made, &joined, sizeof made);
    return made;
}

template <bool shifts>
void multiply(const ChannelFactors& by, const uint16_t* from, int64_t count, uint16_t* to) {
    for (int64_t first = 0; first < count; first += by.period) {
        const int64_t here = std::min(by.period, count - first), whole = here / strip * strip;
        const uint16_t* x = from + first;
        uint16_t* y = to + first;
        int64_t at = 0;
        for (; at < whole; at += strip)
            _mm512_storeu_si512(y + at, strip_of<shifts>(by, at, _mm512_loadu_si512(x + at)));
        if (at == here) continue;
        const __mmask32 rest = (__mmask32{1} << (here - at)) - 1;
        _mm512_mask_storeu_epi16(y + at, rest,
                                 strip_of<shifts>(by, at, _mm512_maskz_loadu_epi16(rest, x + at)));
    }
}
}  // namespace

void multiply_channels(const ChannelFactors& by, const uint16_t* from, int64_t count,
                       uint16_t* to) {
    by.shifts ? multiply<true>(by, from, count, to) : multiply<false>(by, from, count, to);
}

}  // namespace sn
