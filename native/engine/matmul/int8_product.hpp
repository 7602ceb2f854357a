// Products of rows with a matrix of weights, both rounded to eight bits; sums are whole numbers.
#pragma once

#include "../primitive.hpp"

namespace sn {

class Int8Product {
   public:
    // y (rows × outputs) = x (rows × inputs) times the transpose of (outputs × inputs) weights, or
    // with `transposed` times weights of (inputs × outputs).
    void reshape(int64_t rows, int64_t inputs, int64_t outputs, bool transposed, bool bias,
                 const Int8& x);
    void run(const Tensor& x, const Tensor& weights, const float* bias, float* y);

   private:
    dnnl::memory packed(const Tensor& weights);

    int64_t inputs_ = 0, outputs_ = 0;
    bool transposed_ = false;
    Int8 x_;
    dnnl::memory::desc y_, bias_, packed_, one_, each_;
    View y_view_, bias_view_, packed_view_, x_step_, weight_steps_;
    dnnl::matmul::primitive_desc description_;
    dnnl::matmul primitive_;
    Move pack_;
    std::vector<float> steps_;
    std::shared_ptr<float> pages_;
    // The version of the weights that the pages were made from; 0 if they must not be kept.
    uint64_t version_ = 0;
};

}  // namespace sn
