// A convolution of single pixels and, behind it, one that gives each channel a window of its own,
// in float32: mobile nets widen their images so, and what lies between has several times the values
// of either side.
#pragma once

#include "../engine/plan/folded_weights.hpp"
#include "depthwise_planes.hpp"
#include "fused_pass.hpp"

namespace sn {

class Expanded final : public FusedPass {
   public:
    static bool suits(const Layer& layer, const Layer& product);
    // Whether the two are such, in any numbers.
    static bool has_shape(const Layer& layer, const Layer& product);
    Expanded(const Layer& layer, const Window& window);

    const char* name() const override {
        return "expanded: with the windows of each channel behind it";
    }
    void run(const Layer& layer) override;

   private:
    DepthwisePlanes planes_;
    DepthwisePoints points_{};
    dnnl::memory::desc source_, rows_, window_rows_, packed_;
    FoldedWeights weights_, window_weights_;
};

}  // namespace sn
