// Products of four bytes, or of two numbers of bfloat16, in vectors of 512 bits.  Bytes of windows
// have no sign there: job.zero is added to those that have one, and job.starts takes it back.
#include <utility>

#include "picture_loops.hpp"

namespace sn {

namespace {
// Of 32 registers: 28 sums, two vectors of weights, one value.
constexpr int64_t most_windows = 14;

template <Type factors>
struct Sum {
    __m512i total;
    [[gnu::always_inline]] void add(__m512i values, __m512i weights) {
        total = _mm512_dpbusd_epi32(total, values, weights);
    }
    __m512i bits() const { return total; }
    static Sum from(const int32_t* starts) { return {_mm512_loadu_si512(starts)}; }
};

template <>
struct Sum<Type::bf16> {
    __m512 total;
    [[gnu::always_inline]] void add(__m512i values, __m512i weights) {
        __m512bh a, b;
        __builtin_memcpy(&a, &values, sizeof a);
        __builtin_memcpy(&b, &weights, sizeof b);
        total = _mm512_dpbf16_ps(total, a, b);
    }
    __m512i bits() const { return _mm512_castps_si512(total); }
    static Sum from(const int32_t*) { return {_mm512_setzero_ps()}; }
};

inline __m512i four_bytes(const uint8_t* from) {
    int32_t bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return _mm512_set1_epi32(bytes);
}

// Sixteen or, if `wide`, 32 outputs of `windows` windows that lie side by side.
template <Type factors, bool wide, int windows>
void multiply(const PictureJob& job, const uint8_t* line, const uint8_t* weights, int64_t panel,
              const int32_t* starts, int32_t* sums) {
    const int64_t bytes = job.window_bytes(), step = job.dilation_y * job.line_bytes;
    const int64_t apart = job.stride_x * job.channels * job.number_bytes();
    Sum<factors> left[windows], right[windows];
#pragma GCC unroll 14
    for (int w = 0; w < windows; ++w) {
        left[w] = Sum<factors>::from(starts);
        if constexpr (wide) right[w] = Sum<factors>::from(starts + lanes);
    }
    for (int64_t r = 0; r < job.kernel_rows; ++r, line += step)
        for (int64_t at = 0; at < bytes; at += 4, weights += PictureJob::row_bytes) {
            const __m512i first = _mm512_loadu_si512(weights);
            const __m512i second = wide ? _mm512_loadu_si512(weights + panel) : first;
            const uint8_t* from = line + at;
#pragma GCC unroll 14
            for (int w = 0; w < windows; ++w, from += apart) {
                const __m512i values = four_bytes(from);
                left[w].add(values, first);
                if constexpr (wide) right[w].add(values, second);
            }
        }
#pragma GCC unroll 14
    for (int w = 0; w < windows; ++w) {
        _mm512_store_si512(sums + w * lanes, left[w].bits());
        if constexpr (wide) _mm512_store_si512(sums + (most_windows + w) * lanes, right[w].bits());
    }
}

using Multiply = void (*)(const PictureJob& job, const uint8_t* line, const uint8_t* weights,
                          int64_t panel, const int32_t* starts, int32_t* sums);

template <Type factors, bool wide, class>
struct Products;
template <Type factors, bool wide, int... windows>
struct Products<factors, wide, std::integer_sequence<int, windows...>> {
    static constexpr Multiply of[] = {multiply<factors, wide, windows + 1>...};
};

struct Vectors {
    template <Type factors, Type type>
    static void give(const PictureJob& job, const uint8_t* line, int64_t at) {
        using All = std::make_integer_sequence<int, most_windows>;
        // The sign of bytes is job.zero's business.
        constexpr Type kind = factors == Type::bf16 ? Type::bf16 : Type::u8;
        alignas(64) int32_t sums[2 * most_windows * lanes];
        const int64_t panel = job.kernel_rows * job.window_bytes() * lanes;
        const int64_t groups = (job.columns + most_windows - 1) / most_windows;
        const int64_t apart = job.stride_x * job.channels * job.number_bytes();
        const auto* weights = static_cast<const uint8_t*>(job.weights);
        for (int64_t output = 0; output < job.outputs; output += 2 * lanes) {
            const bool wide = output + lanes < job.outputs;
            const auto* products =
                wide ? Products<kind, true, All>::of : Products<kind, false, All>::of;
            for (int64_t group = 0; group < groups; ++group) {
                const int64_t x = job.columns * group / groups;
                const int64_t windows = job.columns * (group + 1) / groups - x;
                products[windows - 1](job, line + x * apart, weights + output / lanes * panel,
                                      panel, job.starts + output, sums);
                const int64_t to = at + x * job.outputs;
                sn::give<factors, type>(job, sums, windows, to, output);
                if (wide)
                    sn::give<factors, type>(job, sums + most_windows * lanes, windows, to,
                                            output + lanes);
            }
        }
    }
};
}  // namespace

void picture_rows_avx512(const PictureJob& job, void* lines, int64_t begin, int64_t end) {
    give_blocks<Vectors>(job, lines, begin, end);
}

}  // namespace sn
