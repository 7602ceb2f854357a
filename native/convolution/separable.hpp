// A convolution that gives each channel a window of its own, and the convolution of single pixels
// behind it, in the test phase of a net in bfloat16: one pass computes both.
#pragma once

#include <vector>

#include "../engine/plan/folded_weights.hpp"
#include "fused_pass.hpp"
#include "separable_rows.hpp"

namespace sn {

class Separable final : public FusedPass {
   public:
    // Whether `layer`, with what is fused into it, and `product`, with what is fused into that,
    // are computed so.
    static bool suits(const Layer& layer, const Layer& product);
    Separable(const Layer& layer, const Window& window);

    const char* name() const override { return "separable: with the 1 x 1 convolution behind it"; }
    void run(const Layer& layer) override;

   private:
    void pack_taps(const Layer& layer);
    void pack_product(const Layer& product);

    SeparableJob job_{};
    int64_t pixels_ = 0;
    dnnl::memory::desc source_, target_;
    FoldedWeights windows_, product_;
    std::vector<uint16_t> zeros_, taps_, weights_;
    std::vector<float> middle_bias_, bias_;
};

}  // namespace sn
