// The gradients of the data of 1 x 1 convolutions with a stride, in bfloat16: those of the few
// pixels that the windows meet, which are spread over the image.
#pragma once

#include <memory>

#include "../engine/primitive.hpp"
#include "convolution.hpp"

namespace sn {

class SpreadPoints {
   public:
    // Nothing for other windows.
    static std::unique_ptr<SpreadPoints> make(const Window& window);

    dnnl::memory::desc slopes() const { return description_.diff_dst_desc(); }
    dnnl::memory::desc weights() const { return description_.weights_desc(); }
    const dnnl::memory::desc& data() const { return data_; }
    void run(const dnnl::memory& slopes, const dnnl::memory& weights,
             const dnnl::memory& data) const;

   private:
    explicit SpreadPoints(const Window& window);

    dnnl::convolution_backward_data::primitive_desc description_;
    dnnl::convolution_backward_data primitive_;
    dnnl::memory::desc data_;
    dnnl::memory::dims few_, strides_;
};

}  // namespace sn
