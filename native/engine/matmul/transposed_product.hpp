// Products of few rows with a large matrix, which becomes the first factor: oneDNN reads the first
// factor in place, and copies the second.
#pragma once

#include "../primitive.hpp"

namespace sn {

// y (rows × columns) = x (rows × depth) times the transpose of a matrix (columns × depth).
class TransposedProduct {
   public:
    // The number of rows for which transposing the result costs less than copying the matrix.
    static constexpr int64_t fewest = 8, most = 64;

    // `lies_turned`: the matrix is stored as depth × columns.
    void reshape(int64_t rows, int64_t columns, int64_t depth, bool lies_turned);
    void run(const float* matrix, const float* x, const float* bias, float* y);

   private:
    void turn(const float* bias, float* y) const;

    int64_t rows_ = 0, columns_ = 0;
    dnnl::memory::desc first_, second_, result_;
    dnnl::matmul product_;
    std::vector<float> turned_;
};

}  // namespace sn
