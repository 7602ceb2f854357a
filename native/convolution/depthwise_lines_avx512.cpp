// A line of the source is put between zeros, where all windows that look at it find it in the first
// cache.
#include <algorithm>
#include <cstring>

#include "depthwise_lines.hpp"
#include "endings_avx512.hpp"

namespace sn {

namespace {
constexpr int64_t lanes = 16;

struct Weights {
    const float* taps;
    __m512 bias;
    // The channels that are real; the others are zero.
    __mmask16 real;
};

// Stores what is finished: `left` pixels.
template <int pixels>
[[gnu::always_inline]] inline void store(const __m512 (&sums)[pixels], const Weights& weights,
                                         int64_t left, float* to) {
    if (left >= pixels && weights.real == 0xffff) {
#pragma GCC unroll 16
        for (int u = 0; u < pixels; ++u) _mm512_storeu_ps(to + u * lanes, sums[u]);
        return;
    }
    alignas(64) float all[pixels * lanes];
#pragma GCC unroll 16
    for (int u = 0; u < pixels; ++u)
        _mm512_store_ps(all + u * lanes, _mm512_maskz_mov_ps(weights.real, sums[u]));
    std::memcpy(to, all, static_cast<size_t>(std::min<int64_t>(left, pixels) * lanes) * 4);
}

// `stride` 0: whatever the job says.
template <int side, int pixels, int stride>
void sum_row(const DepthwisePlane& job, const float* const (&lines)[side], const Weights& weights,
             float* to) {
    const int64_t step = (stride ? stride : job.stride_x) * lanes, apart = job.dilation_x * lanes;
    for (int64_t x = 0; x < job.columns; x += pixels) {
        const int64_t left = job.columns - x;
        __m512 sums[pixels];
#pragma GCC unroll 16
        for (int u = 0; u < pixels; ++u) sums[u] = weights.bias;
        const float* factors = weights.taps;
        for (int i = 0; i < side; ++i) {
            const float* from = lines[i] + x * step;
#pragma GCC unroll 7
            for (int j = 0; j < side; ++j, factors += lanes, from += apart) {
                const __m512 factor = _mm512_loadu_ps(factors);
#pragma GCC unroll 16
                for (int u = 0; u < pixels; ++u)
                    sums[u] = _mm512_fmadd_ps(factor, _mm512_load_ps(from + u * step), sums[u]);
            }
        }
        float* at = to + x * lanes;
        if (job.adds) {
#pragma GCC unroll 16
            for (int u = 0; u < pixels; ++u)
                if (u < left) sums[u] = _mm512_add_ps(sums[u], _mm512_loadu_ps(at + u * lanes));
        }
        finish(job.end, sums);
        store(sums, weights, left, at);
    }
}

template <int side, int pixels>
void sum_row_of(const DepthwisePlane& job, const float* const (&lines)[side],
                const Weights& weights, float* to) {
    if (job.stride_x == 1) return sum_row<side, pixels, 1>(job, lines, weights, to);
    if (job.stride_x == 2) return sum_row<side, pixels, 2>(job, lines, weights, to);
    sum_row<side, pixels, 0>(job, lines, weights, to);
}

template <int side>
void sum_plane(const DepthwisePlane& job, int64_t plane, int64_t begin, int64_t end,
               float* scratch) {
    const int64_t block = plane % job.blocks, channel = block * lanes, reach = job.reach();
    const int64_t size = job.line() * lanes;
    const auto real = static_cast<__mmask16>((1U << std::min(lanes, job.channels - channel)) - 1U);
    const Weights weights{
        job.weights + block * side * side * lanes,
        job.bias ? _mm512_maskz_loadu_ps(real, job.bias + channel) : _mm512_setzero_ps(), real};
    const float* image = job.images + plane * job.height * job.width * lanes;
    const int64_t kept = std::max<int64_t>(0, std::min(job.width, job.line() - job.pad_x));
    const float* zeros = scratch + reach * size;
    // The first line that has not been put there.
    int64_t next = begin * job.stride_y - job.pad_y;
    for (int64_t y = begin; y < end; ++y) {
        const int64_t first = y * job.stride_y - job.pad_y;
        for (next = std::max(next, first); next < first + reach; ++next)
            if (next >= 0 && next < job.height)
                std::memcpy(scratch + next % reach * size + job.pad_x * lanes,
                            image + next * job.width * lanes,
                            static_cast<size_t>(kept * lanes) * sizeof(float));
        const float* lines[side];
        for (int64_t i = 0; i < side; ++i) {
            const int64_t line = first + i * job.dilation_y;
            lines[i] = line >= 0 && line < job.height ? scratch + line % reach * size : zeros;
        }
        float* to = job.to + (plane * job.rows + y) * job.columns * lanes;
        // As many as most images of published nets are divided by.
        if (job.columns >= 14)
            sum_row_of<side, 14>(job, lines, weights, to);
        else
            sum_row_of<side, 7>(job, lines, weights, to);
    }
}
}  // namespace

void depthwise_lines(const DepthwisePlane& job, int64_t plane, int64_t begin, int64_t end,
                     float* scratch) {
    if (job.side == 3)
        sum_plane<3>(job, plane, begin, end, scratch);
    else if (job.side == 5)
        sum_plane<5>(job, plane, begin, end, scratch);
    else
        sum_plane<7>(job, plane, begin, end, scratch);
}

}  // namespace sn
