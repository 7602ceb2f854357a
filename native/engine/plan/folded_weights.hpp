// Weights and bias of a convolution, combined with later layers that scale and shift channels.
#pragma once

#include <vector>

#include "../layer.hpp"

namespace sn {

// Computed again when the parameters have changed, or may have; created with the layer.
class FoldedWeights {
   public:
    // Reads the current parameters of the convolution and of its fused_affine.
    void follow(const Layer& head);
    // The same for the convolution alone.
    void follow_alone(const Layer& head);
    // Whether the weights have to be made again since this was last asked.
    bool is_stale(const Layer& head);
    // The weights in Caffe's order.
    std::shared_ptr<float> rows(const Layer& head) const;
    // The weights in the layout `wanted`; `rows` is the order in which Caffe stores them.
    dnnl::memory weights(const Layer& head, const dnnl::memory::desc& wanted,
                         const dnnl::memory::desc& rows);
    // Frees weights that the next pass computes again.
    void drop_unkept() {
        if (version_ == 0) pages_.reset();
    }
    // Add the layer's correction for eight bits to the bias.
    void correct_int8() { corrects_int8_ = true; }
    // One number for each channel.
    const float* bias() const { return shifts_.data(); }

   private:
    void follow(const Layer& head, const std::vector<Layer*>& affine);
    // Whether parameters have other values than at the last call: all of them, or those of a layer
    // from the `first` on, whose values are noted from `at` on.
    bool note_all(const Layer& head, const std::vector<Layer*>& affine);
    bool note(const Layer& layer, size_t first, size_t& at);

    bool corrects_int8_ = false;
    std::vector<float> factors_, shifts_, seen_;
    std::shared_ptr<float> pages_;
    View view_;
    // The version of the weights that the pages were made from; 0 if they must not be kept.
    uint64_t version_ = 0;
    Move fill_;
};

}  // namespace sn
