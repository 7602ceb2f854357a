#include "few_rows.hpp"

#include <algorithm>
#include <iterator>

#include "../instructions.hpp"
#include "../lanes.hpp"
#include "../parallel.hpp"

namespace sn {

namespace {
// Columns that are computed together: their sums stay in registers.
template <class Vector>
constexpr int64_t columns_at_once(int64_t rows) {
    return rows * int64_t{sizeof(Lanes) / sizeof(Vector)} <= 6 ? 4 : 2;
}

struct Operands {
    int64_t columns, depth;
    const float *x, *matrix, *bias;
    float* y;
};

template <class Vector>
SN_INLINE float sum_of(Vector values) {
    for (int64_t half = sizeof(Vector) / sizeof(float) / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half; ++i) values[i] += values[i + half];
    return values[0];
}

// Neighbouring columns, from `first` on.
template <class Vector, int64_t rows, int64_t width>
SN_INLINE void multiply_columns(const Operands& of, int64_t first) {
    constexpr int64_t lanes = sizeof(Vector) / sizeof(float);
    Vector sums[width][rows] = {};
    const float* matrix = of.matrix + first * of.depth;
    const int64_t whole = of.depth / lanes * lanes;
    for (int64_t k = 0; k < whole; k += lanes) {
        Vector x[rows];
        for (int64_t r = 0; r < rows; ++r) x[r] = lanes_of<Vector>(of.x + r * of.depth + k);
        for (int64_t c = 0; c < width; ++c) {
            const auto factor = lanes_of<Vector>(matrix + c * of.depth + k);
            for (int64_t r = 0; r < rows; ++r) sums[c][r] += factor * x[r];
        }
    }
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < width; ++c) {
            float sum = sum_of(sums[c][r]);
            for (int64_t k = whole; k < of.depth; ++k)
                sum += of.x[r * of.depth + k] * matrix[c * of.depth + k];
            of.y[r * of.columns + first + c] = of.bias ? sum + of.bias[first + c] : sum;
        }
}

template <class Vector, int64_t rows>
void multiply(const Operands& of) {
    constexpr int64_t together = columns_at_once<Vector>(rows);
    parallel((of.columns + together - 1) / together, together * of.depth * rows / 4,
             [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
                 const int64_t stop = std::min(end * together, of.columns);
                 int64_t c = begin * together;
                 for (; c + together <= stop; c += together)
                     multiply_columns<Vector, rows, together>(of, c);
                 for (; c < stop; ++c) multiply_columns<Vector, rows, 1>(of, c);
             });
}

template <class V>
constexpr decltype(&multiply<V, 1>) ways[] = {multiply<V, 1>, multiply<V, 2>, multiply<V, 3>,
                                              multiply<V, 4>, multiply<V, 5>, multiply<V, 6>,
                                              multiply<V, 7>};
static_assert(std::size(ways<Lanes>) == few_rows);
}  // namespace

void multiply_few_rows(int64_t rows, int64_t columns, int64_t depth, const float* x,
                       const float* matrix, const float* bias, float* y) {
    const Operands of = {columns, depth, x, matrix, bias, y};
    (has_avx512() ? ways<Lanes> : ways<HalfLanes>)[rows - 1](of);
}

}  // namespace sn
