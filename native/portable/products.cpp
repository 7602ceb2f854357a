#include "products.hpp"

#include <cstring>

#include "functions.hpp"

namespace portable {

namespace {
typedef float Four __attribute__((vector_size(16)));
constexpr int64_t lanes = 4;
}  // namespace

void multiply_tile(int64_t depth, const float* a, const float* b, float* sums) {
    Four all[tile_rows][tile_columns / lanes] = {};
    for (int64_t k = 0; k < depth; ++k, a += tile_rows, b += tile_columns) {
        Four right[tile_columns / lanes];
        std::memcpy(right, b, sizeof right);
        for (int64_t i = 0; i < tile_rows; ++i)
            for (int64_t j = 0; j < tile_columns / lanes; ++j) all[i][j] += a[i] * right[j];
    }
    std::memcpy(sums, all, sizeof all);
}

void multiply(int64_t m, int64_t n, int64_t k, float alpha, const Strided& a, const Strided& b,
              float* c, int64_t row_c, bool adds) {
    const auto place = [=](int64_t row, int64_t column) { return row * row_c + column; };
    // Along the axis on which the values of B lie one after the other.
    const bool along = b.column == 1 || b.row != 1;
    const Strided turned{b.values, b.column, b.row};
    each_part(m, n, k, [&](Range rows, Range columns) {
        if (along)
            multiply<true>(rows, columns, k, alpha, a, b, c, place, adds);
        else
            multiply<false>(rows, columns, k, alpha, a, turned, c, place, adds);
    });
}

}  // namespace portable

namespace dnnl {

namespace {
// The matrix at the end of a description, by its last two axes.
portable::Strided last_of(const memory::desc& of, const float* values) {
    const size_t axes = of.axes();
    return {values, of.strides()[axes - 2], of.strides()[axes - 1]};
}

// Where matrix `number` of the results is in a factor, which may have one for many.
int64_t begin_of(const memory::desc& factor, const memory::desc& results, int64_t number) {
    int64_t at = 0;
    for (size_t i = results.axes() - 2; i-- > 0;) {
        const int64_t place = number % results.sizes()[i];
        number /= results.sizes()[i];
        if (factor.sizes()[i] != 1) at += place * factor.strides()[i];
    }
    return at;
}
}  // namespace

matmul::primitive_desc::primitive_desc(const engine&, const memory::desc& a, const memory::desc& b,
                                       const memory::desc& bias, const memory::desc& c,
                                       const primitive_attr& with, bool or_none) {
    src = a, weights = b, dst = c;
    // As Caffe keeps its weights: one row for each output.
    if (b.is_any() && b.axes() == 2)
        weights = {b.get_dims(), b.get_data_type(), memory::dims{1, b.sizes()[0]}};
    if (a.is_any()) src = {a.get_dims(), a.get_data_type(), memory::format_tag::ab};
    const memory::desc left = src, right = weights, results = c;
    if (left.is_strided() && right.is_strided() && results.is_dense() && results.axes() >= 2)
        run = [=](const Operands& all) {
            const size_t axes = results.axes();
            const int64_t m = results.sizes()[axes - 2], n = results.sizes()[axes - 1];
            const int64_t k = left.sizes()[axes - 1];
            const memory x = operand(all, DNNL_ARG_SRC), y = operand(all, DNNL_ARG_WEIGHTS);
            const memory shift = operand(all, DNNL_ARG_BIAS);
            float* sums = operand(all, DNNL_ARG_DST).floats();
            const auto one = [&](int64_t i) {
                portable::multiply(m, n, k, 1,
                                   last_of(left, x.floats() + begin_of(left, results, i)),
                                   last_of(right, y.floats() + begin_of(right, results, i)),
                                   sums + i * m * n, n, adds(with));
            };
            const int64_t matrices = results.count() / std::max<int64_t>(1, m * n);
            // Many small ones are computed at once, each in one thread.
            sn::parallel(
                matrices,
                [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) one(i);
                },
                m * n * k / 8);
            if (!shift && with.after.len() == 0) return;
            sn::parallel(
                matrices * m,
                [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) {
                        float* values = sums + row * n;
                        if (shift)
                            for (int64_t i = 0; i < n; ++i) values[i] += shift.floats()[i];
                        finish(with, all, values, row * n, n);
                    }
                },
                n * 8);
        };
    check(or_none);
    (void)bias;
}

}  // namespace dnnl

dnnl_status_t dnnl_sgemm(char transposed_a, char transposed_b, int64_t m, int64_t n, int64_t k,
                         float alpha, const float* a, int64_t row_a, const float* b, int64_t row_b,
                         float beta, float* c, int64_t row_c) {
    if (beta != 0.0F && beta != 1.0F)
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) c[i * row_c + j] *= beta;
    const auto matrix = [](const float* values, char transposed, int64_t row) {
        return transposed == 'T' ? portable::Strided{values, 1, row}
                                 : portable::Strided{values, row, 1};
    };
    portable::multiply(m, n, k, alpha, matrix(a, transposed_a, row_a),
                       matrix(b, transposed_b, row_b), c, row_c, beta != 0.0F);
    return dnnl_success;
}
