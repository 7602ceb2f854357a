// What the loops of all attentions share: vectors, and products of packed matrices.
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined registers of its own header for a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "attention_loops.hpp"

namespace sn {

namespace {
#if defined(__AVX512F__)
// Of 32 registers: 28 sums, two vectors of B, one value of A.
constexpr int64_t lanes = 16;
constexpr int most_rows = 14;
#else
constexpr int64_t lanes = 8;
constexpr int most_rows = 6;
#endif
constexpr int64_t panel = 2 * lanes;

using Floats = float __attribute__((vector_size(4 * lanes)));
using Words = uint32_t __attribute__((vector_size(4 * lanes)));

#define SN_ALWAYS [[gnu::always_inline]] static inline

template <class Vector, class T>
SN_ALWAYS Vector load(const T* from) {
    Vector found;
    std::memcpy(&found, from, sizeof found);
    return found;
}

template <class Vector, class T>
SN_ALWAYS void store(T* to, Vector values) {
    std::memcpy(to, &values, sizeof values);
}

// lanes x lanes words, with rows and columns exchanged.
SN_ALWAYS void turn(const Word* from, int64_t from_row, Word* to, int64_t to_row) {
#if defined(__AVX512F__)
    Words rows[lanes];
    for (int64_t i = 0; i < lanes; ++i) rows[i] = load<Words>(from + i * from_row);
    // Each stage exchanges squares of 8, 4, 2 and 1.
    const __m512i step = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
#pragma GCC unroll 4
    for (int side = 8; side > 0; side /= 2) {
        const __m512i bit = _mm512_set1_epi32(side), other = _mm512_set1_epi32(lanes);
        const __mmask16 odd = _mm512_test_epi32_mask(step, bit);
        // Of a pair of rows the columns without the bit, and those with it.
        const __m512i low = _mm512_mask_add_epi32(step, odd, _mm512_sub_epi32(step, bit), other);
        const __m512i high = _mm512_mask_add_epi32(_mm512_add_epi32(step, bit), odd, step, other);
#pragma GCC unroll 16
        for (int64_t i = 0; i < lanes; ++i) {
            if (i & side) continue;
            const auto a = reinterpret_cast<__m512i>(rows[i]);
            const auto b = reinterpret_cast<__m512i>(rows[i + side]);
            rows[i] = reinterpret_cast<Words>(_mm512_permutex2var_epi32(a, low, b));
            rows[i + side] = reinterpret_cast<Words>(_mm512_permutex2var_epi32(a, high, b));
        }
    }
    for (int64_t i = 0; i < lanes; ++i) store(to + i * to_row, rows[i]);
#else
    for (int64_t i = 0; i < lanes; ++i)
        for (int64_t k = 0; k < lanes; ++k) to[k * to_row + i] = from[i * from_row + k];
#endif
}

// Sums of so many rows and the columns of a panel, which begin with `first` of each column where
// that is given.
template <class Factors, int rows>
void block(const Word* a, int64_t a_row, const Word* b, int64_t steps, const int32_t* first,
           float* c, int64_t c_row) {
    using Sums = typename Factors::Sums;
    Sums sums[rows][2] = {};
    if (first)
        for (int r = 0; r < rows; ++r)
            for (int k = 0; k < 2; ++k) sums[r][k] = load<Sums>(first + k * lanes);
    for (int64_t k = 0; k < steps; ++k, ++a, b += panel) {
        const Words left = load<Words>(b), right = load<Words>(b + lanes);
#pragma GCC unroll 14
        for (int r = 0; r < rows; ++r) {
            Factors::add_product(sums[r][0], a[r * a_row], left);
            Factors::add_product(sums[r][1], a[r * a_row], right);
        }
    }
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r, c += c_row) {
        store(c, sums[r][0]);
        store(c + lanes, sums[r][1]);
    }
}

using Block = void (*)(const Word* a, int64_t a_row, const Word* b, int64_t steps,
                       const int32_t* first, float* c, int64_t c_row);
template <class, class>
struct Blocks;
template <class Factors, int... rows>
struct Blocks<Factors, std::integer_sequence<int, rows...>> {
    static constexpr Block of[] = {block<Factors, rows + 1>...};
};

// C = A B, of whole panels, in blocks of nearly the same number of rows.
template <class Factors>
void multiply(const Word* a, int64_t a_row, const Word* b, int64_t steps, float* c, int64_t rows,
              int64_t columns, const int32_t* first = nullptr) {
    using All = Blocks<Factors, std::make_integer_sequence<int, most_rows>>;
    const int64_t blocks = (rows + most_rows - 1) / most_rows;
    for (int64_t column = 0; column < columns; column += panel)
        for (int64_t i = 0; i < blocks; ++i) {
            const int64_t begin = rows * i / blocks, end = rows * (i + 1) / blocks;
            All::of[end - begin - 1](a + begin * a_row, a_row, b + column * steps, steps,
                                     first ? first + column : nullptr, c + begin * columns + column,
                                     columns);
        }
}

SN_ALWAYS void add_term(const AttentionTerm& term, int64_t row, int64_t columns, float* scores) {
    const float* from = term.values + row * term.row_step;
    const float factor = term.factor;
    if (term.column_step == 1)
        for (int64_t i = 0; i < columns; ++i) scores[i] += from[i] * factor;
    else
        for (int64_t i = 0; i < columns; ++i) scores[i] += from[i * term.column_step] * factor;
}

// The second value where either is no number.
SN_ALWAYS Floats greater(Floats a, Floats b) {
#if defined(__AVX512F__)
    return reinterpret_cast<Floats>(
        _mm512_max_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#else
    return reinterpret_cast<Floats>(
        _mm256_max_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
#endif
}

// The values of a vector become one, half by half.
template <class F>
SN_ALWAYS float folded(Floats of, F two) {
    float values[lanes];
    store(values, of);
#pragma GCC unroll 4
    for (int64_t half = lanes / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int64_t i = 0; i < half; ++i) values[i] = two(values[i], values[i + half]);
    return values[0];
}
}  // namespace

}  // namespace sn
