// The gradients that a oneDNN primitive computes, on their way into a parameter.
#pragma once

#include "../engine/layer.hpp"
#include "../engine/primitive.hpp"

namespace sn {

// Writes a primitive's result into a parameter's gradient, in plain rows; made with the layer.
class Accumulator {
   public:
    // Memory for the result in the layout `wanted`, until let_go.
    dnnl::memory target(const dnnl::memory::desc& wanted);
    void give(const Layer& layer, size_t param, const dnnl::memory::desc& plain);
    void let_go() { memory_ = {}, pages_.reset(); }

   private:
    dnnl::memory memory_;
    std::shared_ptr<float> pages_;
    dnnl::reorder adding_, putting_;
};

}  // namespace sn
