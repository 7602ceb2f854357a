#include "transposed_product.hpp"

#include <algorithm>

#include "../parallel.hpp"

namespace sn {

void TransposedProduct::reshape(int64_t rows, int64_t columns, int64_t depth, bool lies_turned) {
    const dnnl::memory::dims along = {depth, 1}, across = {1, columns};
    rows_ = rows, columns_ = columns;
    first_ = {{columns, depth}, dnnl::memory::data_type::f32, lies_turned ? across : along};
    second_ = {{depth, rows}, dnnl::memory::data_type::f32, {1, depth}};
    result_ = plain_desc({columns, rows});
    product_ = dnnl::matmul({cpu(), first_, second_, result_, attributes()});
    turned_.resize(static_cast<size_t>(rows * columns));
}

void TransposedProduct::run(const float* matrix, const float* x, const float* bias, float* y) {
    sn::run(product_, {{DNNL_ARG_SRC, {first_, cpu(), const_cast<float*>(matrix)}},
                       {DNNL_ARG_WEIGHTS, {second_, cpu(), const_cast<float*>(x)}},
                       {DNNL_ARG_DST, {result_, cpu(), turned_.data()}}});
    turn(bias, y);
}

// A line of memory of each row at a time.
void TransposedProduct::turn(const float* bias, float* y) const {
    constexpr int64_t line = 16;
    parallel((columns_ + line - 1) / line, line * rows_,
             [=, from = turned_.data()](int64_t begin, int64_t end) {
                 for (int64_t c = begin * line; c < std::min(end * line, columns_); c += line) {
                     const int64_t stop = std::min(c + line, columns_);
                     for (int64_t r = 0; r < rows_; ++r)
                         for (int64_t i = c; i < stop; ++i)
                             y[r * columns_ + i] = from[i * rows_ + r] + (bias ? bias[i] : 0.0F);
                 }
             });
}

}  // namespace sn
