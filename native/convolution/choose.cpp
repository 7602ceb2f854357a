// Who computes a convolution.  In this order each is asked whether it suits:
//
//     forward           more than three axes: patches and products (nd_convolution)
//                       pictures of few channels, in eight bits or bfloat16 (picture_convolution)
//                       eight bits: oneDNN's products of bytes (int8_convolution)
//                       with the 1 x 1 convolution behind it, by AMX (separable)
//                       1 x 1 with windows of one channel behind it (expanded, expanded_narrow)
//                       groups of 4, 8 and 16 channels, in the test phase (grouped)
//                       windows of 3 x 3 and 5 x 5 with fewer products (winograd)
//                       a window for each channel, in bfloat16 (depthwise), or in float32 in the
//                       test phase (depthwise_planes)
//                       1 x 1 of few channels or on images of one pixel, in bfloat16 in the test
//                       phase (points)
//                       else oneDNN, in the layout that is fastest there
//     data's gradient   winograd, depthwise, 1 x 1 with a stride (spread_points), else oneDNN
//     weights'          winograd, depthwise, by AMX (learned_weights), else oneDNN
//
// `sparknet time --kernels` prints what was chosen for each layer of a net.
#include <algorithm>
#include <string>

#include "../engine/instructions.hpp"
#include "../engine/nan.hpp"
#include "../engine/net.hpp"
#include "convolution.hpp"
#include "depthwise.hpp"
#include "depthwise_planes.hpp"
#include "fused_pass.hpp"
#include "int8_convolution.hpp"
#include "learned_weights.hpp"
#include "nd_convolution.hpp"
#include "picture_convolution.hpp"
#include "points.hpp"
#include "spread_points.hpp"
#include "winograd.hpp"

namespace sn {

using dnnl::memory;

namespace {
memory::desc any(const memory::dims& dims, memory::data_type type) {
    return {dims, type, memory::format_tag::any};
}

// oneDNN's plain loops, or its products of copied patches: far slower than the processor allows.
template <class Description>
bool is_slow(const Description& description) {
    const std::string name = description.impl_info_str();
    return name.find("ref") != std::string::npos || name.find("gemm") != std::string::npos;
}

std::unique_ptr<WindowPass> fast(const Window& window, WindowPass::Pass pass) {
    if (auto made = make_winograd(window, pass)) return made;
    if (Depthwise::suits(window)) return std::make_unique<Depthwise>(window, pass);
    return nullptr;
}

// The description that `describe` makes for images of a layout.  Channels last are the fastest,
// where oneDNN has a kernel of its own for them: blocks of 16 channels leave lanes empty.
template <class F>
auto best(bool may_be_last, F&& describe) {
    if (may_be_last) {
        auto last = describe(memory::format_tag::nhwc, true);
        if (last && !is_slow(last)) return last;
    }
    return describe(memory::format_tag::any, false);
}

// Whether oneDNN 3.2's convolutions of SSE4.1 spoil the sums that a function at their end reads,
// other than a ReLU's, where channels fill no vector (docs/decisions/0017).
bool spoils_functions() {
    return !has_avx2();
}

// Whether its images lie in blocks of sixteen channels.  Others read those of one pixel as rows,
// without copies, unless a block is filled up.
bool blocks_channels(const Layer& layer, const Window& window) {
    constexpr int64_t block = 16;
    const auto& from = window.source;
    const bool lies_as_rows = window.is_image && from[2] == 1 && from[3] == 1;
    if (lies_as_rows && (from[1] % block != 0 || window.target[1] % block != 0)) return false;
    return window.is_image && window.factors == memory::data_type::f32 && !layer.has_gradients() &&
           layer.net->blocks_channels();
}

// Whether oneDNN 3.2's SSE4.1 kernel of windows of one channel would read behind the other term of
// a sum, with channels last that fill no vector (docs/decisions/0017).
bool reads_behind(const Layer& layer) {
    constexpr int64_t lanes = 8;
    return layer.fused_sum && !has_avx2() && is_depthwise(layer) &&
           layer.options.integer("num_output") % lanes != 0;
}

// A description of 1 x 1 convolutions with a stride that is not oneDNN 3.2's jit_1x1 where channels
// fill no vector: it gathers the pixels into too little memory (docs/decisions/0017).
template <class Description>
Description within_bounds(Description description, const Window& window) {
    constexpr int64_t lanes = 16;
    const auto ones = [](const memory::dims& dims, size_t from) {
        return std::all_of(dims.begin() + static_cast<long>(from), dims.end(),
                           [](int64_t dim) { return dim == 1; });
    };
    const size_t first = window.weights.size() - window.strides.size();
    if (!ones(window.weights, first) || ones(window.strides, 0)) return description;
    // Of each group.
    if (window.weights[first - 1] % lanes == 0 && window.weights[first - 2] % lanes == 0)
        return description;
    while (description &&
           std::string(description.impl_info_str()).find("jit_1x1") != std::string::npos)
        if (!description.next_impl()) return {};
    return description;
}

// The fused layers that follow, as operations of the primitive on its result.
dnnl::post_ops post_ops(const Layer& layer, bool ends) {
    dnnl::post_ops made;
    if (layer.fused_sum) made.append_sum(1.0F);
    const auto end = layer.fused_relu ? std::optional(relu_ending) : layer.fused_ending;
    if (end && (ends || layer.fused_relu))
        made.append_eltwise(end->algorithm, end->alpha, end->beta);
    return made;
}

}  // namespace

template <class Family>
bool WindowKernel<Family>::make_picture(const Layer& layer) {
    picture_ = PictureConvolution::make(layer, *window_, false);
    if (picture_ && has_fused_)
        picture_fused_ = PictureConvolution::make(layer, *fused_window_, true);
    if (picture_ && (picture_fused_ || !has_fused_)) return true;
    picture_.reset(), picture_fused_.reset();
    return false;
}

template <class Family>
bool WindowKernel<Family>::make_int8(const Layer& layer) {
    if (!Int8Convolution::suits(layer, *window_)) return false;
    int8_ = Int8Convolution::make(layer, *window_, false);
    if (int8_ && has_fused_) int8_fused_ = Int8Convolution::make(layer, *fused_window_, true);
    if (int8_ && (int8_fused_ || !has_fused_)) return true;
    int8_.reset(), int8_fused_.reset();
    return false;
}

template <class Family>
auto WindowKernel<Family>::make_pass(const Layer& layer, const Window& window, bool fused,
                                     bool may_end) const -> ForwardPass {
    const auto kind = layer.has_gradients() ? dnnl::prop_kind::forward_training
                                            : dnnl::prop_kind::forward_inference;
    // Only a picture's gradients are faster in the layout that it has.
    const bool last =
        !(fused && reads_behind(layer)) &&
        (kind == dnnl::prop_kind::forward_inference ? window.is_plane : window.may_be_last);
    const bool bias = !Family::adds_bias && (window.bias || (fused && !layer.fused_affine.empty()));
    auto with = attributes();
    ForwardPass made;
    made.fast = fast(window, WindowPass::Pass::forward);
    if (!made.fast && DepthwisePlanes::suits(layer, window, fused))
        made.fast = std::make_unique<DepthwisePlanes>(layer, window, fused);
    if (!made.fast && !Family::reverse && Points::suits(layer, window))
        made.fast = std::make_unique<Points>(window);
    made.ends = may_end && fused && layer.fused_ending &&
                (made.fast ? made.fast->ends(*layer.fused_ending) : !spoils_functions());
    if (fused) with.set_post_ops(post_ops(layer, made.ends));
    const auto describe = [&](memory::format_tag from, memory::format_tag to, bool or_none) {
        return within_bounds(
            typename Forward::primitive_desc(
                cpu(), kind, Family::algorithm, memory::desc(window.source, window.factors, from),
                any(window.weights, window.factors), bias ? window.plain_bias : memory::desc(),
                memory::desc(window.target, window.factors, to), window.strides, window.dilations,
                window.before, window.after, with, or_none),
            window);
    };
    const bool is_direct = !made.fast || !fused;
    if (is_direct && blocks_channels(layer, window)) {
        constexpr auto blocks = memory::format_tag::nChw16c;
        const auto from = window.may_be_last ? blocks : memory::format_tag::any;
        if (auto found = describe(from, blocks, true); found && !is_slow(found)) made.desc = found;
    }
    const auto find = [&] {
        return best(last, [&](memory::format_tag images, bool or_none) {
            return describe(images, images, or_none || made.ends);
        });
    };
    // Backward passes are described by it, too.
    if (is_direct && !made.desc) made.desc = find();
    // No fast kernel computes this function: it is computed behind one that does not.
    if (is_direct && made.ends && (!made.desc || is_slow(made.desc))) {
        made.ends = false;
        with = attributes();  // oneDNN 3.2 keeps operations that fewer ones do not replace
        with.set_post_ops(post_ops(layer, false));
        made.desc = find();
    }
    if (!made.fast) made.primitive = Forward(made.desc);
    made.source = window.by_axes(made.fast ? made.fast->source() : made.desc.src_desc());
    made.weights = made.fast ? made.fast->weights() : made.desc.weights_desc();
    made.target = window.by_axes(made.fast ? made.fast->target() : made.desc.dst_desc());
    return made;
}

template <class Family>
void WindowKernel<Family>::make_forward(const Layer& layer) {
    // Fused layers run alone only where somebody asks for what lies between them.
    if (!has_fused_ || layer.has_gradients()) forward_ = make_pass(layer, *window_, false);
    if (!has_fused_) return;
    fused_ = make_pass(layer, *fused_window_, true);
    folded_ = layer.pack<FoldedWeights>(fused_.weights, 0);
}

template <class Family>
void WindowKernel<Family>::make_data(const Window& window) {
    fast_data_ = fast(window, WindowPass::Pass::data);
    if (fast_data_) return;
    if (!Family::reverse) spread_ = SpreadPoints::make(window);
    if (spread_) return;
    data_desc_ = best(window.may_be_last, [&](memory::format_tag images, bool or_none) {
        return within_bounds(
            typename BackwardData::primitive_desc(
                cpu(), Family::algorithm, memory::desc(window.source, window.factors, images),
                any(window.weights, window.factors),
                memory::desc(window.target, window.factors, images), window.strides,
                window.dilations, window.before, window.after, forward_.desc, attributes(),
                or_none),
            window);
    });
    data_ = BackwardData(data_desc_);
}

template <class Family>
void WindowKernel<Family>::make_weights(const Window& window) {
    fast_weights_ = fast(window, WindowPass::Pass::weights);
    if (fast_weights_) return;
    if (!Family::reverse) learned_ = LearnedWeights::make(window);
    if (learned_) return;
    weights_desc_ = best(window.may_be_last, [&](memory::format_tag images, bool or_none) {
        return within_bounds(
            typename BackwardWeights::primitive_desc(
                cpu(), Family::algorithm, memory::desc(window.source, window.factors, images),
                any(window.weights, memory::data_type::f32),
                window.bias ? window.plain_bias : memory::desc(),
                memory::desc(window.target, window.factors, images), window.strides,
                window.dilations, window.before, window.after, forward_.desc, attributes(),
                or_none),
            window);
    });
    weights_ = BackwardWeights(weights_desc_);
}

template <class Family>
void WindowKernel<Family>::reshape(Layer& layer) {
    many_axes_.reset();
    weight_sum_ = {}, bias_sum_ = {};
    forward_ = {}, fused_ = {}, unended_ = {}, searched_ = 0;
    ending_.reset();
    fast_data_.reset(), fast_weights_.reset();
    int8_.reset(), int8_fused_.reset();
    picture_.reset(), picture_fused_.reset();
    learned_.reset(), spread_.reset(), fused_pass_.reset();
    has_fused_ = false;
    if (layer.options.integers("kernel").size() > 3) {
        many_axes_ = make_nd_convolution(Family::reverse);
        return many_axes_->reshape(layer);
    }
    window_.emplace(layer, Family::reverse, false);
    fused_window_.emplace(layer, Family::reverse, true);
    has_fused_ = !Family::reverse && layer.fused_last != nullptr;
    folded_.reset();
    if (layer.bottoms[0]->count() == 0 || layer.tops[0]->count() == 0) return;
    if (!Family::reverse && (make_picture(layer) || make_int8(layer))) return;
    if (has_fused_) fused_pass_ = FusedPass::make(layer, *fused_window_);
    make_forward(layer);
    if (layer.backward && is_any(layer.propagate)) make_data(*window_);
    if (layer.backward && is_any(layer.learns)) make_weights(*window_);
}

template <class Family>
std::string WindowKernel<Family>::method(const Layer& layer, Kernel::Part part) const {
    const auto direct = [](const auto& description) {
        return description ? name_of(description) : std::string();
    };
    if (many_axes_)
        return part == Kernel::Part::forward || layer.backward
                   ? "patches and products: more than three axes"
                   : "";
    if (part == Kernel::Part::data) {
        if (fast_data_) return fast_data_->name();
        return spread_ ? "spread points: 1 x 1 with a stride" : direct(data_desc_);
    }
    if (part == Kernel::Part::weights) {
        if (fast_weights_) return fast_weights_->name();
        return learned_ ? "tiles: AMX writes gradients in plain rows" : direct(weights_desc_);
    }
    if (picture_) return "picture: few channels in narrow numbers";
    if (int8_) return int8_->name();
    const bool fuse = has_fused_ && layer.fused;
    if (fuse && fused_pass_) return fused_pass_->name();
    const ForwardPass& pass = fuse || !forward_ ? fused_ : forward_;
    return pass.fast ? pass.fast->name() : direct(pass.desc);
}

template void WindowKernel<Convolutions>::reshape(Layer&);
template auto WindowKernel<Convolutions>::make_pass(const Layer&, const Window&, bool, bool) const
    -> ForwardPass;
template std::string WindowKernel<Convolutions>::method(const Layer&, Kernel::Part) const;
template void WindowKernel<Deconvolutions>::reshape(Layer&);
template auto WindowKernel<Deconvolutions>::make_pass(const Layer&, const Window&, bool, bool) const
    -> ForwardPass;
template std::string WindowKernel<Deconvolutions>::method(const Layer&, Kernel::Part) const;

}  // namespace sn
