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

// Some pixels of a line, from `columns` neighbouring ones of each block of the images.
template <int pixels>
void make_points(const DepthwisePoints& points, const float* from, int64_t apart,
                 const float* weights, __m512 bias, float* to) {
    __m512 sums[pixels];
#pragma GCC unroll 16
    for (int u = 0; u < pixels; ++u) sums[u] = bias;
    for (int64_t first = 0; first < points.channels; first += lanes, from += apart) {
        const int64_t count = std::min(lanes, points.channels - first);
        for (int64_t c = 0; c < count; ++c, weights += lanes) {
            const __m512 factor = _mm512_loadu_ps(weights);
#pragma GCC unroll 16
            for (int u = 0; u < pixels; ++u)
                sums[u] = _mm512_fmadd_ps(factor, _mm512_set1_ps(from[u * lanes + c]), sums[u]);
        }
    }
    finish(points.end, sums);
#pragma GCC unroll 16
    for (int u = 0; u < pixels; ++u) _mm512_storeu_ps(to + u * lanes, sums[u]);
}

// The last pixels are made together with some that have been made before.
template <int pixels>
void make_line(const DepthwisePoints& points, const float* from, int64_t apart,
               const float* weights, __m512 bias, int64_t columns, float* to) {
    for (int64_t x = 0; x < columns; x += pixels) {
        const int64_t at = std::min(x, columns - pixels) * lanes;
        make_points<pixels>(points, from + at, apart, weights, bias, to + at);
    }
}

// A line of a plane, `columns` wide.
void put_line(const DepthwisePlane& job, int64_t plane, int64_t line, const Weights& weights,
              int64_t columns, float* to) {
    const int64_t size = job.height * job.width * lanes, at = line * job.width * lanes;
    const DepthwisePoints& points = job.points;
    if (points.channels == 0) {
        std::memcpy(to, job.images + plane * size + at,
                    static_cast<size_t>(columns * lanes) * sizeof(float));
        return;
    }
    const int64_t blocks = (points.channels + lanes - 1) / lanes, block = plane % job.blocks;
    const float* from = job.images + plane / job.blocks * blocks * size + at;
    const float* factors = points.weights + block * points.channels * lanes;
    const __m512 bias = _mm512_maskz_loadu_ps(weights.real, points.bias + block * lanes);
    if (columns >= 14)
        make_line<14>(points, from, size, factors, bias, columns, to);
    else if (columns >= 7)
        make_line<7>(points, from, size, factors, bias, columns, to);
    else
        make_line<1>(points, from, size, factors, bias, columns, to);
}

template <int side>
void sum_plane(const DepthwisePlane& job, int64_t plane, int64_t begin, int64_t end,
               float* scratch) {
    const int64_t block = plane % job.blocks, channel = block * lanes;
    const auto real = static_cast<__mmask16>((1U << std::min(lanes, job.channels - channel)) - 1U);
    const Weights weights{
        job.weights + block * side * side * lanes,
        job.bias ? _mm512_maskz_loadu_ps(real, job.bias + channel) : _mm512_setzero_ps(), real};
    over_lines<side>(
        job, begin, end, scratch,
        [&](int64_t line, int64_t columns, float* to) {
            put_line(job, plane, line, weights, columns, to);
        },
        [&](int64_t row, const float* const(&lines)[side]) {
            float* to = job.to + (plane * job.rows + row) * job.columns * lanes;
            if (job.together() == 14)
                sum_row_of<side, 14>(job, lines, weights, to);
            else
                sum_row_of<side, 7>(job, lines, weights, to);
        });
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
