// Convolutions of numbers of eight bits: sums are whole numbers of 32 bits, and the last fused
// layer's values are rounded once.
#pragma once

#include <optional>

#include "convolution.hpp"

namespace sn {

// How the last of the layers computed together stores its values; nothing: in float32.
std::optional<Int8> stored_in_int8(const Layer& layer, const Window& window, bool fuse);

class Int8Convolution {
   public:
    // Whether the layer computes so, with or without the layers fused into it.
    static bool suits(const Layer& layer, const Window& window);
    // Nothing where oneDNN has only plain loops for this shape.
    static std::unique_ptr<Int8Convolution> make(const Layer& layer, const Window& window,
                                                 bool fuse);

    void run(Layer& layer, const Tensor& bottom, size_t i);
    std::string name() const { return name_of(description_); }

   private:
    Int8Convolution(const Layer& layer, const Window& window, bool fuse);
    dnnl::memory weights(const Layer& layer);
    dnnl::memory target(const Layer& layer, size_t i);

    bool fuse_;
    dnnl::convolution_forward::primitive_desc description_;
    dnnl::convolution_forward primitive_;
    dnnl::memory::desc order_, packed_, results_, one_, each_;
    View packed_view_, bias_, source_step_, weight_steps_, target_step_;
    int64_t outputs_ = 0;
    // How values come in; how they go out, where not in float32; and how the other blob of a sum
    // is read before it is overwritten.
    Int8 source_;
    std::optional<Int8> target_, other_;
    struct Weights {
        FoldedWeights folded;
        Move pack;
        std::vector<float> steps;
        std::shared_ptr<float> pages;
    };
    std::shared_ptr<Weights> weights_;
};

}  // namespace sn
