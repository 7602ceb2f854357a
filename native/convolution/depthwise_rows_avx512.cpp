// Two taps are multiplied and added at once.  Their values are interleaved, which takes 32 channels
// to two vectors of sums: one with the channels 0 to 3, 8 to 11 and so on, one with the others.
#include <algorithm>
#include <type_traits>

#include "depthwise_rows.hpp"
#include "endings_avx512.hpp"

namespace sn {

namespace {
constexpr int64_t lanes = 16, strip = 2 * lanes;

inline __m512bh factors(__m512i words) {
    __m512bh made;
    __builtin_memcpy(&made, &words, sizeof made);
    return made;
}

inline __mmask32 first_words(int64_t count) {
    return count >= strip ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

inline __mmask16 first_floats(int64_t count) {
    return count >= lanes ? __mmask16(~0U) : __mmask16((1U << std::max<int64_t>(count, 0)) - 1U);
}

// The sums of 32 channels in the order in which they are computed, and in that of memory.
struct Sums {
    __m512 low, high;

    static Sums of(__m512 first, __m512 second) {
        const __m512i even =
            _mm512_set_epi32(27, 26, 25, 24, 19, 18, 17, 16, 11, 10, 9, 8, 3, 2, 1, 0);
        const __m512i odd =
            _mm512_set_epi32(31, 30, 29, 28, 23, 22, 21, 20, 15, 14, 13, 12, 7, 6, 5, 4);
        return {_mm512_permutex2var_ps(first, even, second),
                _mm512_permutex2var_ps(first, odd, second)};
    }
    static Sums widened(__m512i words) {
        const __m512i none = _mm512_setzero_si512();
        return {_mm512_castsi512_ps(_mm512_unpacklo_epi16(none, words)),
                _mm512_castsi512_ps(_mm512_unpackhi_epi16(none, words))};
    }
    __m512i narrowed() const {
        const __m512bh joined = _mm512_cvtne2ps_pbh(high, low);
        __m512i words;
        __builtin_memcpy(&words, &joined, sizeof words);
        return _mm512_permutexvar_epi64(_mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0), words);
    }
};

// What the channels of a strip have in common for all pixels of a row: 32 of them, if it is whole.
template <int side, bool whole>
struct Strip {
    static constexpr int taps = side * side, pairs = (taps + 1) / 2;

    Strip(const DepthwiseJob& job, int64_t at)
        : mask(first_words(job.channels - at)), bias{_mm512_setzero_ps(), _mm512_setzero_ps()} {
        if (job.bias) {
            const int64_t left = job.channels - at;
            bias =
                Sums::of(_mm512_maskz_loadu_ps(first_floats(left), job.bias + at),
                         _mm512_maskz_loadu_ps(first_floats(left - lanes), job.bias + at + lanes));
        }
        take([&](int64_t tap) { return load(job.weights + tap * job.channels + at); });
    }
    // Two neighbouring pixels of sixteen channels are a strip.
    explicit Strip(const DepthwiseJob& job)
        : mask(~__mmask32{0}), bias{_mm512_setzero_ps(), _mm512_setzero_ps()} {
        if (job.bias) {
            const __m512 one = _mm512_loadu_ps(job.bias);
            bias = Sums::of(one, one);
        }
        take([&](int64_t tap) {
            const auto* from = job.weights + tap * lanes;
            return _mm512_broadcast_i64x4(
                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
        });
    }

    // The weights of each tap.
    template <class Value>
    void take(Value&& value) {
        each_pair(value, [&](int pair, __m512i a, __m512i b) { low[pair] = a, high[pair] = b; });
    }

    // take(pair, a, b) for each two taps, whose values are interleaved.
    template <class Value, class Take>
    [[gnu::always_inline]] static inline void each_pair(Value&& value, Take&& take) {
#pragma GCC unroll 13
        for (int pair = 0; pair < pairs; ++pair) {
            const __m512i a = value(2 * pair);
            const __m512i b = 2 * pair + 1 < taps ? value(2 * pair + 1) : _mm512_setzero_si512();
            take(pair, _mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b));
        }
    }

    // One pixel: value(tap) are the channels that a tap sees.
    template <class Value>
    [[gnu::always_inline]] inline void sum(const DepthwiseJob& job, Value&& value,
                                           uint16_t* to) const {
        Sums sums = bias;
        each_pair(value, [&](int pair, __m512i a, __m512i b) {
            sums.low = _mm512_dpbf16_ps(sums.low, factors(a), factors(low[pair]));
            sums.high = _mm512_dpbf16_ps(sums.high, factors(b), factors(high[pair]));
        });
        if (job.adds) {
            const Sums old = Sums::widened(load(to));
            sums.low = _mm512_add_ps(sums.low, old.low);
            sums.high = _mm512_add_ps(sums.high, old.high);
        }
        __m512 both[] = {sums.low, sums.high};
        finish(job.end, both);
        sums = {both[0], both[1]};
        // Masks slow a store down.
        if (whole)
            _mm512_storeu_si512(to, sums.narrowed());
        else
            _mm512_mask_storeu_epi16(to, mask, sums.narrowed());
    }

    __m512i load(const uint16_t* from) const {
        return whole ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16(mask, from);
    }

    __mmask32 mask;
    Sums bias;
    __m512i low[pairs], high[pairs];
};

template <int side, bool whole>
void sum_row(const DepthwiseJob& job, const uint16_t* const (&rows)[side], int64_t at,
             uint16_t* to) {
    const Strip<side, whole> weights(job, at);
    const int64_t apart = job.dilation_x * job.channels;
    const int64_t reach = (side - 1) * job.dilation_x, space = job.width - 1 - reach + job.pad_x;
    // The first pixel whose window lies inside, and the one behind the last.
    const int64_t left = std::min(job.columns, (job.pad_x + job.stride_x - 1) / job.stride_x);
    const int64_t right =
        space < 0 ? left : std::clamp(space / job.stride_x + 1, left, job.columns);
    const auto sum_edges = [&](int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
            const int64_t from = x * job.stride_x - job.pad_x;
            weights.sum(
                job,
                [&](int64_t tap) {
                    const int64_t column = from + tap % side * job.dilation_x;
                    const bool inside = column >= 0 && column < job.width;
                    return inside ? weights.load(rows[tap / side] + column * job.channels)
                                  : _mm512_setzero_si512();
                },
                to + x * job.channels);
        }
    };
    const auto sum_inner = [&](const auto& strip_of, int64_t x) {
        const int64_t from = (x * job.stride_x - job.pad_x) * job.channels;
        strip_of.sum(
            job,
            [&](int64_t tap) __attribute__((always_inline)) {
                return strip_of.load(rows[tap / side] + from + tap % side * apart);
            },
            to + x * job.channels);
    };
    sum_edges(0, left);
    int64_t x = left;
    if (!whole && job.channels == lanes && job.stride_x == 1) {
        const Strip<side, true> both(job);
        for (; x + 2 <= right; x += 2) sum_inner(both, x);
    }
    for (; x < right; ++x) sum_inner(weights, x);
    sum_edges(right, job.columns);
}

template <int side>
void sum_rows(const DepthwiseJob& job, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
        const int64_t y = row % job.rows, image = row / job.rows;
        const uint16_t* rows[side];
        for (int64_t at = 0; at < job.channels; at += strip) {
            for (int64_t i = 0; i < side; ++i) {
                const int64_t line = y * job.stride_y - job.pad_y + i * job.dilation_y;
                const bool inside = line >= 0 && line < job.height;
                const int64_t place = (image * job.height + line) * job.width * job.channels;
                rows[i] = (inside ? job.images + place : job.zeros) + at;
            }
            uint16_t* to = job.to + row * job.columns * job.channels + at;
            at + strip <= job.channels ? sum_row<side, true>(job, rows, at, to)
                                       : sum_row<side, false>(job, rows, at, to);
        }
    }
}

// Some neighbouring pixels of a line, 32 channels each.
template <int pixels>
void make_points(const ExpandedJob& job, const uint16_t* from, int64_t at, float* to) {
    __m512 sums[2 * pixels];
    const __m512 low = _mm512_loadu_ps(job.points_bias + at);
    const __m512 high = _mm512_loadu_ps(job.points_bias + at + lanes);
#pragma GCC unroll 14
    for (int u = 0; u < pixels; ++u) sums[2 * u] = low, sums[2 * u + 1] = high;
    const uint16_t* weights = job.points + at * job.inputs;
    int64_t i = 0;
    // At least once, so that the sums begin in registers.
    do {
        const __m512bh left = factors(_mm512_loadu_si512(weights));
        const __m512bh right = factors(_mm512_loadu_si512(weights + strip));
#pragma GCC unroll 14
        for (int u = 0; u < pixels; ++u) {
            int32_t two;
            __builtin_memcpy(&two, from + u * job.inputs + i, sizeof two);
            const __m512bh pair = factors(_mm512_set1_epi32(two));
            sums[2 * u] = _mm512_dpbf16_ps(sums[2 * u], left, pair);
            sums[2 * u + 1] = _mm512_dpbf16_ps(sums[2 * u + 1], right, pair);
        }
        i += 2, weights += 2 * strip;
    } while (i < job.inputs);
    finish(job.points_end, sums);
#pragma GCC unroll 14
    for (int u = 0; u < pixels; ++u) {
        const __m512bh joined = _mm512_cvtne2ps_pbh(sums[2 * u + 1], sums[2 * u]);
        __builtin_memcpy(to + u * lanes, &joined, sizeof joined);
    }
}

// The last pixels are made together with some that have been made before.
template <int pixels>
void make_line(const ExpandedJob& job, const uint16_t* from, int64_t at, int64_t columns,
               float* to) {
    for (int64_t x = 0; x < columns; x += pixels) {
        const int64_t first = std::min(x, columns - pixels);
        make_points<pixels>(job, from + first * job.inputs, at, to + first * lanes);
    }
}

// What lies in the image as the windows look at it.
template <int side, bool whole>
void copy_line(const Strip<side, whole>& strip_of, const uint16_t* from, int64_t channels,
               int64_t columns, float* to) {
    for (int64_t x = 0; x < columns; ++x, from += channels, to += lanes)
        _mm512_store_si512(to, strip_of.load(from));
}

template <int side, bool whole>
void sum_strip(const ExpandedJob& job, int64_t image, int64_t at, int64_t begin, int64_t end,
               float* scratch) {
    const DepthwiseJob& windows = job.windows;
    const Strip<side, whole> weights(windows, at);
    over_lines<side>(
        job, begin, end, scratch,
        [&](int64_t line, int64_t columns, float* to) {
            const uint16_t* from =
                job.images + (image * job.height + line) * job.width * job.inputs;
            if (!job.points)
                copy_line<side, whole>(weights, from + at, job.inputs, columns, to);
            else if (columns >= 14)
                make_line<14>(job, from, at, columns, to);
            else if (columns >= 7)
                make_line<7>(job, from, at, columns, to);
            else
                make_line<1>(job, from, at, columns, to);
        },
        [&](int64_t row, const float* const(&lines)[side]) {
            uint16_t* to =
                windows.to + (image * job.rows + row) * job.columns * windows.channels + at;
            const int64_t apart = job.dilation_x * lanes;
            for (int64_t x = 0; x < job.columns; ++x, to += windows.channels) {
                const int64_t from = x * job.stride_x * lanes;
                weights.sum(
                    windows,
                    [&](int64_t tap) __attribute__((always_inline)) {
                        return _mm512_load_si512(lines[tap / side] + from + tap % side * apart);
                    },
                    to);
            }
        });
}
}  // namespace

void expanded_rows(const ExpandedJob& job, int64_t plane, int64_t begin, int64_t end,
                   float* scratch) {
    const int64_t channels = job.windows.channels, strips = (channels + strip - 1) / strip;
    const int64_t image = plane / strips, at = plane % strips * strip;
    const auto run = [&](auto side) {
        at + strip <= channels ? sum_strip<side, true>(job, image, at, begin, end, scratch)
                               : sum_strip<side, false>(job, image, at, begin, end, scratch);
    };
    if (job.side == 3)
        run(std::integral_constant<int, 3>());
    else
        run(std::integral_constant<int, 5>());
}

void depthwise_rows(const DepthwiseJob& job, int64_t begin, int64_t end) {
    job.side == 3 ? sum_rows<3>(job, begin, end) : sum_rows<5>(job, begin, end);
}

}  // namespace sn
