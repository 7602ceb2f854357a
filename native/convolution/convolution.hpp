// Convolution and Deconvolution, on oneDNN or on loops of our own.
//
// Both are one kernel over two families of oneDNN's primitives.  window.hpp describes a
// convolution, choose.cpp says who computes each part of it, convolution.cpp runs what was chosen.
// The loops that are compiled for one instruction set have it in their names: *_amx, *_avx512,
// *_haswell.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "../engine/activation.hpp"
#include "../engine/layer.hpp"
#include "../engine/plan/folded_weights.hpp"
#include "../engine/primitive.hpp"
#include "../layers/operand.hpp"
#include "accumulator.hpp"
#include "window.hpp"

namespace sn {

struct Convolutions {
    using Forward = dnnl::convolution_forward;
    using BackwardData = dnnl::convolution_backward_data;
    using BackwardWeights = dnnl::convolution_backward_weights;
    static constexpr auto algorithm = dnnl::algorithm::convolution_auto;
    static constexpr bool reverse = false;
    static constexpr bool adds_bias = false;
};

struct Deconvolutions {
    using Forward = dnnl::deconvolution_forward;
    using BackwardData = dnnl::deconvolution_backward_data;
    using BackwardWeights = dnnl::deconvolution_backward_weights;
    static constexpr auto algorithm = dnnl::algorithm::deconvolution_direct;
    static constexpr bool reverse = true;
    // The bias is added behind oneDNN 3.2, which adds it several times (docs/decisions/0017).
    static constexpr bool adds_bias = true;
};

inline bool is_any(const std::vector<bool>& of) {
    return std::find(of.begin(), of.end(), true) != of.end();
}

// Who computes a primitive, for people.
template <class Description>
std::string name_of(const Description& description) {
    return std::string("oneDNN ") + description.impl_info_str();
}

class WindowPass;
class Int8Convolution;
class PictureConvolution;
class LearnedWeights;
class SpreadPoints;
class FusedPass;

template <class Family>
class WindowKernel final : public Kernel {
   public:
    WindowKernel();
    ~WindowKernel() override;
    void reshape(Layer& layer) override;
    void forward(Layer& layer) override;
    void backward(Layer& layer) override;
    bool looks_back(const Layer& layer, Role role, size_t i) const override;
    bool fuses() const override { return has_fused_; }
    Followers followers(const Layer& layer) const override;
    bool joins(const Layer& layer, const Layer& product) const override;
    int64_t reads_every(const Layer& layer) const override;
    bool only_reads() const override { return true; }
    bool stays_beside_others(const Layer& layer) const override { return !layer.has_gradients(); }
    bool prefers_blocks(const Layer& layer) const override;
    std::optional<double> products(const Layer& layer) const override;
    std::string method(const Layer& layer, Kernel::Part part) const override;

   private:
    using Forward = typename Family::Forward;
    using BackwardData = typename Family::BackwardData;
    using BackwardWeights = typename Family::BackwardWeights;

    // Whether the forward pass is computed by the kernels of pictures, or by those of eight bits.
    bool make_picture(const Layer& layer);
    bool make_int8(const Layer& layer);
    void make_forward(const Layer& layer);
    void make_data(const Window& window);
    void make_weights(const Window& window);
    const Tensor& source(const Layer& layer, size_t i, bool fuse);
    void forward(Layer& layer, size_t i, bool fuse);
    void end(const Layer& layer, Tensor& top);
    void add_bias(const Layer& layer, const float* bias, Tensor& top);
    void backward_weights(Layer& layer, size_t i);
    void backward_data(Layer& layer, size_t i);

    // More spatial axes than oneDNN has.
    std::unique_ptr<Kernel> many_axes_;
    // The layer alone, and with those fused into it.
    std::optional<Window> window_, fused_window_;
    // A forward pass: how it takes its values and weights, and how its results lie.
    struct ForwardPass {
        typename Forward::primitive_desc desc;
        Forward primitive;
        // Faster than oneDNN's.
        std::unique_ptr<WindowPass> fast;
        dnnl::memory::desc source, weights, target;
        // Whether it computes the function at its end, too.
        bool ends = false;
        explicit operator bool() const { return fast || primitive; }
    };
    ForwardPass make_pass(const Layer& layer, const Window& window, bool fused,
                          bool may_end = true) const;
    bool would_lose_nan(const Layer& layer, const Tensor& bottom);

    // The first is made when it runs, where others are fused in; the last one leaves the function
    // at the end out.
    ForwardPass forward_, fused_, unended_;
    // The version of the weights that were searched for NaN, and whether there is one.
    uint64_t searched_ = 0;
    bool has_nan_ = false;
    Activation ending_;
    View bias_view_;
    Operand padded_bias_;
    bool has_fused_ = false;
    // The pixels that this layer reads, of a whole blob.
    Tensor picked_;
    std::shared_ptr<FoldedWeights> folded_;
    typename BackwardData::primitive_desc data_desc_;
    BackwardData data_;
    typename BackwardWeights::primitive_desc weights_desc_;
    BackwardWeights weights_;
    // Passes that are faster than oneDNN's.
    std::unique_ptr<WindowPass> fast_data_, fast_weights_;
    // In eight bits: the layer alone, and with those fused into it.
    std::unique_ptr<Int8Convolution> int8_, int8_fused_;
    // The same for pictures of few channels.
    std::unique_ptr<PictureConvolution> picture_, picture_fused_;
    // The gradients of the weights alone, or of the data, where that is faster.
    std::unique_ptr<LearnedWeights> learned_;
    std::unique_ptr<SpreadPoints> spread_;
    // With all that is fused into it, where that is faster than oneDNN's.
    std::unique_ptr<FusedPass> fused_pass_;
    Accumulator weight_sum_, bias_sum_;
};

}  // namespace sn
