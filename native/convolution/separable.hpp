// A convolution that gives each channel a window of its own, and the convolution of single pixels
// behind it, in the test phase of a net in bfloat16: one pass computes both.
#pragma once

#include <vector>

#include "convolution.hpp"
#include "separable_rows.hpp"

namespace sn {

class Separable {
   public:
    // Whether `layer`, with what is fused into it, and `product`, with what is fused into that,
    // are computed so.
    static bool suits(const Layer& layer, const Layer& product);
    Separable(const Layer& layer, const Window& window);

    // From the layer's bottom to the last top of the layer's fused_product.
    void run(const Layer& layer);

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
