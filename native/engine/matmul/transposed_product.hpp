// Products of few rows with a large matrix, which goes first: oneDNN reads the first factor as it
// lies, and copies the second.
#pragma once

#include "../primitive.hpp"

namespace sn {

// y (rows × columns) = x (rows × depth) times the transpose of a matrix (columns × depth).
class TransposedProduct {
   public:
    // The rows for which turning the result costs less than copying the matrix.
    static constexpr int64_t fewest = 8, most = 64;

    // `lies_turned`: the matrix is kept as depth × columns.
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
