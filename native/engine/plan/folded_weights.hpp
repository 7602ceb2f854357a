// Weights and bias of a convolution with the layers behind it that multiply and shift channels.
#pragma once

#include <vector>

#include "../layer.hpp"

namespace sn {

// Computed anew when the parameters have changed, or may have; made anew with the layer.
class FoldedWeights {
   public:
    // Looks at the parameters of the convolution and of its fused_affine as they are now.
    void follow(const Layer& head);
    // The weights in the layout `wanted`; `rows` is the order in which Caffe keeps them.
    dnnl::memory weights(const Layer& head, const dnnl::memory::desc& wanted,
                         const dnnl::memory::desc& rows);
    // One number a channel.
    const float* bias() const { return shifts_.data(); }

   private:
    // The weights in Caffe's order.
    std::shared_ptr<float> rows(const Layer& head) const;

    std::vector<float> factors_, shifts_;
    std::shared_ptr<float> pages_;
    // Of the weights that the pages were made from; 0: not to be kept.
    uint64_t version_ = 0;
    Move fill_;
};

}  // namespace sn
