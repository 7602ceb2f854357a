// Matrix products whose factors may be rounded to bfloat16, from tensors of plain float32 rows:
// of two whole tensors, and of one matrix with many small ones in turn.
#pragma once

#include "../move.hpp"
#include "../tensor.hpp"
#include "product.hpp"

namespace sn {

// C = A B, or C += A B.  In float32 by sgemm: for large factors in Caffe's order nothing of
// oneDNN's is faster.
class TensorProduct {
   public:
    void reshape(Matrix a, Matrix b, dnnl::memory::data_type factors);
    void run(const Tensor& a, const Tensor& b, float* c, bool adds);

   private:
    Matrix a_{}, b_{};
    bool narrow_ = false;
    Product product_;
};

// C = A B, or C += A B, for one B and many A of a few rows: B is brought into the layout that
// multiplies fastest once, and not for every A.
class StepProduct {
   public:
    void reshape(int64_t rows, Matrix b, bool adds, dnnl::memory::data_type factors);
    // Takes B's values as they are now; run() needs the tensor unchanged.
    void pack(const Tensor& b);
    void run(const float* a, float* c);

   private:
    dnnl::memory::desc rows_, c_, b_rows_;
    dnnl::matmul product_;
    dnnl::memory::desc a_desc_, b_desc_;
    // B packed; A rounded, where it has to be.
    dnnl::memory b_, a_;
    Move round_;
};

}  // namespace sn
