// Products of rows with a matrix of weights, both rounded to eight bits; sums are whole numbers.
#pragma once

#include <optional>

#include "../primitive.hpp"
#include "product.hpp"

namespace sn {

class Int8Product {
   public:
    // y (rows × outputs) = x (rows × inputs) times the transpose of (outputs × inputs) weights, or
    // with `transposed` times weights of (inputs × outputs); then `end`. With `y_step` the results
    // are stored in eight bits as well. False if there is no fast kernel for all that.
    struct Sizes {
        int64_t rows, inputs, outputs;
        bool transposed, bias;
    };
    bool reshape(const Sizes& sizes, const Int8& x, const ProductEnd& end,
                 const std::optional<Int8>& y);
    void run(const Tensor& x, const Tensor& weights, const float* bias, Blob& y,
             const float* other = nullptr);

   private:
    dnnl::memory packed(const Tensor& weights);
    bool make_rounding();

    Sizes sizes_ = {};
    Int8 x_;
    std::optional<Int8> narrow_y_;
    dnnl::memory::desc y_, bias_, packed_, one_, each_;
    View y_view_, bias_view_, packed_view_, x_step_, weight_steps_, other_view_;
    dnnl::matmul::primitive_desc description_;
    // The second one rounds what it makes to bfloat16.
    dnnl::matmul primitive_, rounding_;
    dnnl::primitive_attr with_;
    bool may_round_ = true;
    Move pack_;
    std::vector<float> steps_;
    std::shared_ptr<float> pages_;
    // The version of the weights that the pages were made from; 0 if they must not be kept.
    uint64_t version_ = 0;
};

}  // namespace sn
