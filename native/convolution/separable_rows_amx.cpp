// Two taps of a window are multiplied and added at once: their values are interleaved, which
// leaves the channels of a strip in another order (SeparableJob::shuffled).
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined registers of its own header for a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>

#include "separable_rows.hpp"
#include "tiles.hpp"

namespace sn {

namespace {
constexpr int64_t lanes = SeparableJob::lanes, strip = SeparableJob::strip;
constexpr int64_t both = 2 * lanes;  // rows of two tiles

void configure() {
    TileShapes shapes;
    for (int tile = 0; tile < 8; ++tile) shapes.bytes[tile] = 64, shapes.rows[tile] = lanes;
    shapes.load();
}

inline __mmask32 first(int64_t count) {
    return count >= strip ? ~__mmask32{0} : (__mmask32{1} << std::max<int64_t>(count, 0)) - 1;
}

inline __m512i narrow(__m512 low, __m512 high) {
    const __m512bh joined = _mm512_cvtne2ps_pbh(high, low);
    __m512i words;
    __builtin_memcpy(&words, &joined, sizeof words);
    return words;
}

inline __m512bh factors(__m512i words) {
    __m512bh made;
    __builtin_memcpy(&made, &words, sizeof made);
    return made;
}

// One strip of a pixel: value(tap) are the channels that a tap sees.
template <int64_t fixed, class F>
[[gnu::always_inline]] inline __m512i sum_taps(const SeparableJob& job, int64_t at, F&& value) {
    const int64_t count = job.kernel_rows * job.kernel_columns;
    const int64_t pairs = fixed > 0 ? (fixed + 1) / 2 : job.pairs(),
                  taps = fixed > 0 ? fixed : count;
    const uint16_t* weights = job.taps + at * pairs * 2;
    __m512 low = _mm512_loadu_ps(job.middle_bias + at);
    __m512 high = _mm512_loadu_ps(job.middle_bias + at + lanes);
    for (int64_t pair = 0; pair < pairs; ++pair) {
        const __m512i a = value(2 * pair);
        const __m512i b = 2 * pair + 1 < taps ? value(2 * pair + 1) : _mm512_setzero_si512();
        const uint16_t* these = weights + pair * 2 * strip;
        low = _mm512_dpbf16_ps(low, factors(_mm512_unpacklo_epi16(a, b)),
                               factors(_mm512_loadu_si512(these)));
        high = _mm512_dpbf16_ps(high, factors(_mm512_unpackhi_epi16(a, b)),
                                factors(_mm512_loadu_si512(these + strip)));
    }
    const __m512 least = _mm512_set1_ps(job.middle_least);
    return narrow(_mm512_max_ps(least, low), _mm512_max_ps(least, high));
}

// A row of the target: the rows of the source that its windows meet.
struct Line {
    const uint16_t* rows[SeparableJob::most_taps];
};

// A pixel whose window may lie partly outside.
void sum_pixel(const SeparableJob& job, const Line& line, int64_t x, uint16_t* to) {
    const uint16_t* seen[SeparableJob::most_taps];
    const int64_t from = x * job.stride_x - job.pad_x;
    for (int64_t j = 0; j < job.kernel_columns; ++j) {
        const int64_t column = from + j * job.dilation_x;
        const bool inside = column >= 0 && column < job.width;
        for (int64_t i = 0; i < job.kernel_rows; ++i)
            seen[i * job.kernel_columns + j] =
                inside ? line.rows[i] + column * job.channels : job.zeros;
    }
    for (int64_t at = 0; at < job.channels; at += strip) {
        const __mmask32 mask = first(job.channels - at);
        const __m512i values = sum_taps<0>(
            job, at, [&](int64_t tap) { return _mm512_maskz_loadu_epi16(mask, seen[tap] + at); });
        _mm512_storeu_si512(to + at, values);
    }
}

// The rows that the windows of the next row of the target see first are on their way.
inline void fetch_ahead(const SeparableJob& job, const uint16_t* last) {
    for (int64_t row = 1; row <= job.stride_y; ++row)
        for (int64_t column = 0; column < job.stride_x; ++column)
            __builtin_prefetch(last + (row * job.width + column) * job.channels);
}

// Pixels whose windows of 3 x 3 lie inside.
void sum_inner(const SeparableJob& job, const Line& line, int64_t x, int64_t end, uint16_t* to) {
    const int64_t apart = job.dilation_x * job.channels, wide = job.strips() * strip;
    for (; x < end; ++x, to += wide) {
        const int64_t from = (x * job.stride_x - job.pad_x) * job.channels;
        for (int64_t at = 0; at < job.channels; at += strip) {
            const __mmask32 mask = first(job.channels - at);
            const uint16_t* rows[3] = {line.rows[0] + from + at, line.rows[1] + from + at,
                                       line.rows[2] + from + at};
            fetch_ahead(job, rows[2]);
            const __m512i values = sum_taps<9>(job, at, [&](int64_t tap) {
                return _mm512_maskz_loadu_epi16(mask, rows[tap / 3] + tap % 3 * apart);
            });
            _mm512_storeu_si512(to + at, values);
        }
    }
}

// The windows of pixels `begin` to `end`, with `wide` values each.
void sum_windows(const SeparableJob& job, int64_t begin, int64_t end, uint16_t* to) {
    const int64_t wide = job.strips() * strip;
    const bool has_inner = job.kernel_rows == 3 && job.kernel_columns == 3;
    const int64_t reach = (job.kernel_columns - 1) * job.dilation_x;
    // The first pixel of a row whose window lies inside, and the one behind the last.
    const int64_t left = (job.pad_x + job.stride_x - 1) / job.stride_x;
    const int64_t space = job.width - 1 - reach + job.pad_x;
    const int64_t right = space < 0 ? 0 : space / job.stride_x + 1;
    Line line;
    while (begin < end) {
        const int64_t y = begin / job.columns % job.rows, image = begin / job.columns / job.rows;
        for (int64_t i = 0; i < job.kernel_rows; ++i) {
            const int64_t row = y * job.stride_y - job.pad_y + i * job.dilation_y;
            const bool inside = row >= 0 && row < job.height;
            line.rows[i] = inside
                               ? job.images + (image * job.height + row) * job.width * job.channels
                               : job.zeros;
        }
        int64_t x = begin % job.columns;
        const int64_t stop = std::min(job.columns, x + end - begin);
        begin += stop - x;
        while (x < stop) {
            const int64_t inner = std::min(stop, right);
            if (has_inner && x >= left && x < inner) {
                sum_inner(job, line, x, inner, to);
                to += (inner - x) * wide;
                x = inner;
            } else {
                sum_pixel(job, line, x++, to);
                to += wide;
            }
        }
    }
}

void give(const SeparableJob& job, const float* sums, int64_t pixels, int64_t output,
          uint16_t* to) {
    const __mmask32 mask = first(job.outputs - output);
    const __m512 low = _mm512_loadu_ps(job.bias + output);
    const __m512 high = _mm512_loadu_ps(job.bias + output + lanes);
    const __m512 least = _mm512_set1_ps(job.least);
    for (int64_t p = 0; p < pixels; ++p) {
        const float* left = sums + p * lanes;
        const __m512 a = _mm512_add_ps(_mm512_load_ps(left), low);
        const __m512 b = _mm512_add_ps(_mm512_load_ps(left + both * lanes), high);
        _mm512_mask_storeu_epi16(to + p * job.outputs, mask,
                                 narrow(_mm512_max_ps(least, a), _mm512_max_ps(least, b)));
    }
}

// Two tiles of pixels by two of outputs.
void multiply(const SeparableJob& job, const uint16_t* middle, const uint16_t* weights,
              float* sums) {
    const int64_t strips = job.strips(), row = strips * strip * 2;
    const uint16_t* lower = middle + lanes * strips * strip;
    const uint16_t* right = weights + strips * lanes * strip;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t k = 0; k < strips; ++k) {
        _tile_loadd(4, middle + k * strip, row);
        _tile_loadd(6, weights + k * lanes * strip, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, right + k * lanes * strip, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, lower + k * strip, row);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, 64);
    _tile_stored(2, sums + lanes * lanes, 64);
    _tile_stored(1, sums + 2 * lanes * lanes, 64);
    _tile_stored(3, sums + 3 * lanes * lanes, 64);
    SN_FINISH_STORES();
}

void multiply_block(const SeparableJob& job, const uint16_t* middle, int64_t pixels, uint16_t* to) {
    alignas(64) float sums[4 * lanes * lanes];
    const int64_t wide = job.strips() * strip;
    for (int64_t output = 0; output < job.outputs; output += both)
        for (int64_t p = 0; p < pixels; p += both) {
            multiply(job, middle + p * wide, job.weights + output * wide, sums);
            give(job, sums, std::min(both, pixels - p), output, to + p * job.outputs + output);
        }
}
}  // namespace

void separable_rows(const SeparableJob& job, uint16_t* middle, int64_t begin, int64_t end) {
    configure();
    // As even as whole strips allow.
    const int64_t blocks = (end - begin + job.block - 1) / job.block;
    const int64_t each = ((end - begin + blocks - 1) / blocks + both - 1) / both * both;
    for (; begin < end; begin += each) {
        const int64_t stop = std::min(end, begin + each);
        sum_windows(job, begin, stop, middle);
        SN_FINISH_STORES();
        multiply_block(job, middle, stop - begin, job.to + begin * job.outputs);
    }
    _tile_release();
}

}  // namespace sn
