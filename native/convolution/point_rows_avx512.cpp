#include <algorithm>

#include "endings_avx512.hpp"
#include "point_rows.hpp"

namespace sn {

namespace {
constexpr int64_t lanes = 16, strip = PointsJob::strip;
// What the second cache holds of an image beside the weights, in bytes.
constexpr int64_t cached = 1 << 17;

inline __m512bh factors(__m512i words) {
    __m512bh made;
    __builtin_memcpy(&made, &words, sizeof made);
    return made;
}

inline __mmask16 first_floats(int64_t count) {
    return count >= lanes ? __mmask16(~0U) : __mmask16((1U << std::max<int64_t>(count, 0)) - 1U);
}

inline __m512 widened(__m256i words) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

// A strip of outputs of some pixels: `width` of them, which are all of these vectors if it is
// whole.
template <int vectors, bool whole>
struct Strip {
    Strip(const PointsJob& of, int64_t first_output)
        : job(of), at(first_output), weights(of.weights + first_output / strip * of.strip_size) {
        for (int v = 0; v < vectors; ++v) {
            masks[v] = first_floats(of.outputs - at - v * lanes);
            bias[v] = of.bias ? _mm512_maskz_loadu_ps(masks[v], of.bias + at + v * lanes)
                              : _mm512_setzero_ps();
        }
    }

    template <int pixels>
    [[gnu::always_inline]] inline void multiply(int64_t first) const {
        const uint16_t* from = job.images + first * job.inputs;
        const uint16_t* by = weights;
        __m512 sums[vectors * pixels];
#pragma GCC unroll 14
        for (int u = 0; u < pixels; ++u)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) sums[vectors * u + v] = bias[v];
        int64_t i = 0;
        // At least once, so that the sums begin in registers.
        do {
            __m512bh factor[vectors];
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v)
                factor[v] = factors(_mm512_loadu_si512(by + v * 2 * lanes));
#pragma GCC unroll 14
            for (int u = 0; u < pixels; ++u) {
                int32_t two;
                __builtin_memcpy(&two, from + u * job.inputs + i, sizeof two);
                const __m512bh pair = factors(_mm512_set1_epi32(two));
#pragma GCC unroll 2
                for (int v = 0; v < vectors; ++v)
                    sums[vectors * u + v] =
                        _mm512_dpbf16_ps(sums[vectors * u + v], factor[v], pair);
            }
            i += 2, by += 2 * strip;
        } while (i < job.inputs);
        put<pixels>(sums, job.to + first * job.outputs + at);
    }

    template <int pixels>
    [[gnu::always_inline]] inline void put(__m512 (&sums)[vectors * pixels], uint16_t* to) const {
        if (job.adds)
#pragma GCC unroll 14
            for (int u = 0; u < pixels; ++u)
#pragma GCC unroll 2
                for (int v = 0; v < vectors; ++v)
                    sums[vectors * u + v] =
                        _mm512_add_ps(sums[vectors * u + v], load(to + u * job.outputs, v));
        finish(job.end, sums);
#pragma GCC unroll 14
        for (int u = 0; u < pixels; ++u) store(&sums[vectors * u], to + u * job.outputs);
    }

    __m512 load(const uint16_t* from, int v) const {
        const auto* words = from + v * lanes;
        return widened(whole ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words))
                             : _mm256_maskz_loadu_epi16(masks[v], words));
    }

    // Masks slow a store down.
    [[gnu::always_inline]] inline void store(const __m512* sums, uint16_t* to) const {
        if constexpr (vectors == 2 && whole) {
            const __m512bh joined = _mm512_cvtne2ps_pbh(sums[1], sums[0]);
            __builtin_memcpy(to, &joined, sizeof joined);
        } else {
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) {
                const __m256bh made = _mm512_cvtneps_pbh(sums[v]);
                __m256i words;
                __builtin_memcpy(&words, &made, sizeof words);
                if (whole)
                    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + v * lanes), words);
                else
                    _mm256_mask_storeu_epi16(to + v * lanes, masks[v], words);
            }
        }
    }

    void run(int64_t first, int64_t last) const {
        for (; first + 14 <= last; first += 14) multiply<14>(first);
        if (first + 8 <= last) multiply<8>(first), first += 8;
        if (first + 4 <= last) multiply<4>(first), first += 4;
        if (first + 2 <= last) multiply<2>(first), first += 2;
        if (first < last) multiply<1>(first);
    }

    const PointsJob& job;
    int64_t at;
    const uint16_t* weights;
    __mmask16 masks[vectors];
    __m512 bias[vectors];
};

void run_strip(const PointsJob& job, int64_t at, int64_t first, int64_t last) {
    const int64_t left = job.outputs - at;
    if (left >= strip) return Strip<2, true>(job, at).run(first, last);
    if (left > lanes) return Strip<2, false>(job, at).run(first, last);
    if (left == lanes) return Strip<1, true>(job, at).run(first, last);
    Strip<1, false>(job, at).run(first, last);
}
}  // namespace

void point_rows(const PointsJob& job, const PointsPart& part) {
    constexpr int64_t together = 14;
    const int64_t step = std::max<int64_t>(1, cached / (2 * job.inputs) / together) * together;
    for (int64_t first = part.first_pixel; first < part.last_pixel; first += step) {
        const int64_t last = std::min(part.last_pixel, first + step);
        for (int64_t s = part.first_strip; s < part.last_strip; ++s)
            run_strip(job, s * strip, first, last);
    }
}

}  // namespace sn
