// Matrix products whose factors may be rounded to bfloat16, from tensors of plain float32 rows:
// of two whole tensors, or of one matrix with many small ones.
#pragma once

#include "../move.hpp"
#include "../tensor.hpp"
#include "packed_rows.hpp"
#include "product.hpp"

namespace sn {

// C = A B, or C += A B.  In float32 by sgemm: for large factors in Caffe's order nothing in
// oneDNN is faster.
class TensorProduct {
   public:
    void reshape(Matrix a, Matrix b, dnnl::memory::data_type factors);
    void run(const Tensor& a, const Tensor& b, float* c, bool adds);

   private:
    Matrix a_{}, b_{};
    bool narrow_ = false;
    Product product_;
};

// C = A B, or C += A B, for one B and many A of a few rows: B is packed once into the layout that
// multiplies fastest, and not for every A.
class StepProduct {
   public:
    void reshape(int64_t rows, Matrix b, bool adds, dnnl::memory::data_type factors);
    // Packs the current values of B; run() requires that the tensor has not changed since.
    void pack(const Tensor& b);
    void run(const float* a, float* c);

   private:
    // Loops of our own, where they are faster.
    std::optional<PackedRows> few_;
    dnnl::memory::desc rows_, c_, b_rows_;
    dnnl::matmul product_;
    dnnl::memory::desc a_desc_, b_desc_;
    // A and C, which lie elsewhere in each step.
    dnnl::memory from_, to_;
    // The packed B; the rounded A, if it must be rounded.
    dnnl::memory b_, a_;
    Move round_;
};

}  // namespace sn
