// Products of a few rows with a large matrix in Caffe's order, which is read once, where it lies.
// oneDNN copies the matrix into another order first, which costs more than the product.
#pragma once

#include <cstdint>

namespace sn {

// The number of rows up to which this is the fastest way, from 1 on.
constexpr int64_t few_rows = 7;

// y (rows × columns) = x (rows × depth) times the transpose of a matrix (columns × depth), plus
// the bias, if there is one. The bits do not depend on the number of threads or rows.
void multiply_few_rows(int64_t rows, int64_t columns, int64_t depth, const float* x,
                       const float* matrix, const float* bias, float* y);

}  // namespace sn
