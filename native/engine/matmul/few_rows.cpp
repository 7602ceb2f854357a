#include "few_rows.hpp"

#include <algorithm>
#include <iterator>

#include "../lanes.hpp"
#include "../parallel.hpp"

namespace sn {

namespace {
// Columns that are computed together: their sums stay in registers.
constexpr int64_t columns_at_once(int64_t rows) {
    return rows <= 4 ? 4 : 2;
}

struct Operands {
    int64_t columns, depth;
    const float *x, *matrix, *bias;
    float* y;
};

SN_INLINE float sum_of(Lanes values) {
    for (int64_t half = lanes / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half; ++i) values[i] += values[i + half];
    return values[0];
}

// Neighbouring columns, from `first` on.
template <int64_t rows, int64_t width>
SN_INLINE void multiply_columns(const Operands& of, int64_t first) {
    Lanes sums[width][rows] = {};
    const float* matrix = of.matrix + first * of.depth;
    const int64_t whole = of.depth / lanes * lanes;
    for (int64_t k = 0; k < whole; k += lanes) {
        Lanes x[rows];
        for (int64_t r = 0; r < rows; ++r) x[r] = lanes_of(of.x + r * of.depth + k);
        for (int64_t c = 0; c < width; ++c) {
            const Lanes factor = lanes_of(matrix + c * of.depth + k);
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

template <int64_t rows>
void multiply(const Operands& of) {
    constexpr int64_t together = columns_at_once(rows);
    parallel((of.columns + together - 1) / together,
             [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
                 const int64_t stop = std::min(end * together, of.columns);
                 int64_t c = begin * together;
                 for (; c + together <= stop; c += together)
                     multiply_columns<rows, together>(of, c);
                 for (; c < stop; ++c) multiply_columns<rows, 1>(of, c);
             },
             together * of.depth * rows / 4);
}
}  // namespace

void multiply_few_rows(int64_t rows, int64_t columns, int64_t depth, const float* x,
                       const float* matrix, const float* bias, float* y) {
    const Operands of = {columns, depth, x, matrix, bias, y};
    using Multiply = void (*)(const Operands&);
    constexpr Multiply ways[] = {multiply<1>, multiply<2>, multiply<3>, multiply<4>,
                                 multiply<5>, multiply<6>, multiply<7>};
    static_assert(std::size(ways) == few_rows);
    ways[rows - 1](of);
}

}  // namespace sn
