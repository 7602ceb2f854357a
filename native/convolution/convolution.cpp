#include "convolution.hpp"

#include <algorithm>

#include "../engine/instructions.hpp"
#include "../engine/nan.hpp"
#include "../engine/net.hpp"
#include "fused_pass.hpp"
#include "int8_convolution.hpp"
#include "learned_weights.hpp"
#include "other_term.hpp"
#include "picture_convolution.hpp"
#include "pixels.hpp"
#include "spread_points.hpp"
#include "window_pass.hpp"

namespace sn {

using dnnl::memory;

template <class Family>
WindowKernel<Family>::WindowKernel() = default;
template <class Family>
WindowKernel<Family>::~WindowKernel() = default;

// A bottom's values; of a whole one, if this layer skips pixels, those that it reads.
template <class Family>
const Tensor& WindowKernel<Family>::source(const Layer& layer, size_t i, bool fuse) {
    const Tensor& bottom = layer.bottoms[i]->data;
    if (!fuse || layer.bottom_every == 1 || bottom.storage().has_only(fused_window_->source))
        return bottom;
    picked_.reshape(fused_window_->source);
    const auto floats = memory::data_type::f32;
    const auto to = picked_.write(last_axis(fused_window_->source, floats));
    move_pixels(bottom.read(last_axis(bottom.shape(), floats)), layer.bottom_every, to);
    return picked_;
}

template <class Family>
void WindowKernel<Family>::add_bias(const Layer& layer, const float* bias, Tensor& top) {
    const auto axis = static_cast<size_t>(layer.options.integer("axis"));
    const Broadcast view = broadcast(top, axis, 1);
    const float* shifts = padded_bias_.padded(bias, view);
    map(view, top, top, [=](float value, int64_t c) { return value + shifts[c]; });
}

template <class Family>
void WindowKernel<Family>::forward(Layer& layer, size_t i, bool fuse) {
    if (picture_) return (fuse ? picture_fused_ : picture_)->run(layer, i);
    const Tensor& bottom = source(layer, i, fuse);
    if (int8_) return (fuse ? int8_fused_ : int8_)->run(layer, bottom, i);
    const bool folds = fuse && !layer.fused_affine.empty();
    const bool unended = fuse && would_lose_nan(layer, bottom);
    if (unended && !unended_.primitive) unended_ = make_pass(layer, *fused_window_, true, false);
    if (!fuse && !forward_) forward_ = make_pass(layer, *window_, false);
    const ForwardPass& pass = unended ? unended_ : fuse ? fused_ : forward_;
    const memory weights = folds ? folded_->weights(layer, pass.weights, window_->plain_weights)
                                 : layer.params[0]->data.read(pass.weights, window_->plain_weights);
    const memory from = bottom.read(pass.source);
    Tensor& top = fuse ? layer.fused_last->tops[0]->data : layer.tops[i]->data;
    const memory to =
        fuse && layer.fused_sum ? edit_other(layer, pass.target) : top.write(pass.target);
    const float* bias = nullptr;
    if (folds)
        bias = folded_->bias();
    else if (window_->bias)
        bias = layer.param(1);
    if (pass.fast) {
        const auto function = pass.ends ? LoopEnding::of(false, layer.fused_ending) : std::nullopt;
        pass.fast->run(from, weights,
                       {bias, fuse && layer.fused_sum, fuse && layer.fused_relu,
                        function.value_or(LoopEnding{})},
                       to);
        if (fuse && !pass.ends) end(layer, top);
        return;
    }
    Arguments arguments = {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, to}};
    if (bias && !Family::adds_bias)
        arguments.add(DNNL_ARG_BIAS, bias_view_.of(window_->plain_bias, bias));
    run(pass.primitive, arguments);
    if (bias && Family::adds_bias) add_bias(layer, bias, top);
    if (fuse && !pass.ends) end(layer, top);
}

// oneDNN's clip makes a number of NaN: where there is one it is computed behind the pass.
template <class Family>
bool WindowKernel<Family>::would_lose_nan(const Layer& layer, const Tensor& bottom) {
    if (!loses_nan(layer.fused_ending) || fused_.fast || !fused_.ends) return false;
    const Tensor& weights = layer.params[0]->data;
    const uint64_t version = weights.storage().version();
    if (version == 0 || version != searched_) has_nan_ = has_nan(weights), searched_ = version;
    const auto some = [](const Blobs& params, size_t first) {
        return std::any_of(params.begin() + static_cast<long>(first), params.end(),
                           [](const Blob* one) { return has_nan(one->data); });
    };
    return has_nan_ || has_nan(bottom) || some(layer.params, 1) ||
           (layer.fused_sum && has_nan(layer.fused_other->data)) ||
           std::any_of(layer.fused_affine.begin(), layer.fused_affine.end(),
                       [&](const Layer* affine) { return some(affine->params, 0); });
}

// The function behind a pass that does not compute it.
template <class Family>
void WindowKernel<Family>::end(const Layer& layer, Tensor& top) {
    if (const auto& end = layer.fused_ending) finish(*end, ending_, top);
}

template <class Family>
void WindowKernel<Family>::forward(Layer& layer) {
    if (many_axes_) return many_axes_->forward(layer);
    const bool fuse = has_fused_ && layer.fused;
    if (fuse && fused_pass_) return fused_pass_->run(layer);
    if (fuse && !int8_ && !picture_ && !layer.fused_affine.empty()) folded_->follow(layer);
    for (size_t i = 0; i < layer.bottoms.size(); ++i) {
        if (layer.tops[i]->count() == 0) continue;
        if (layer.bottoms[i]->count() == 0) {
            layer.refuse("has nothing to read but something to write");
        }
        forward(layer, i, fuse);
        if (fuse && layer.top_every > 1)
            layer.fused_last->tops[0]->data.storage().note_only(fused_window_->target);
    }
    if (folded_) folded_->drop_unkept();
}

template <class Family>
void WindowKernel<Family>::backward_weights(Layer& layer, size_t i) {
    if (learned_) {
        const memory from = layer.bottoms[i]->data.read(learned_->source());
        const memory slopes = layer.tops[i]->diff.read(learned_->slopes());
        bool adds = true;
        float* rows = layer.param_diff(0, adds);
        return learned_->run(from, slopes, rows, adds);
    }
    const bool few = fast_weights_ != nullptr;
    const auto& direct = weights_desc_;
    const auto by_axes = [&](const memory::desc& images) { return window_->by_axes(images); };
    const memory from =
        layer.bottoms[i]->data.read(by_axes(few ? fast_weights_->source() : direct.src_desc()));
    const memory slopes =
        layer.tops[i]->diff.read(by_axes(few ? fast_weights_->target() : direct.diff_dst_desc()));
    const memory to =
        weight_sum_.target(few ? fast_weights_->weights() : direct.diff_weights_desc());
    const memory bias = window_->bias ? bias_sum_.target(window_->plain_bias) : memory();
    if (few) {
        fast_weights_->learn(from, slopes, to, bias);
    } else {
        Arguments arguments = {
            {DNNL_ARG_SRC, from}, {DNNL_ARG_DIFF_DST, slopes}, {DNNL_ARG_DIFF_WEIGHTS, to}};
        if (bias) arguments.add(DNNL_ARG_DIFF_BIAS, bias);
        run(weights_, arguments);
    }
    if (layer.learns[0]) weight_sum_.give(layer, 0, window_->plain_weights);
    if (window_->bias && layer.learns[1]) bias_sum_.give(layer, 1, window_->plain_bias);
    weight_sum_.let_go(), bias_sum_.let_go();
}

template <class Family>
void WindowKernel<Family>::backward_data(Layer& layer, size_t i) {
    const auto& weights = layer.params[0]->data;
    const auto by_axes = [&](const memory::desc& images) { return window_->by_axes(images); };
    if (fast_data_)
        return fast_data_->run(layer.tops[i]->diff.read(by_axes(fast_data_->source())),
                               weights.read(fast_data_->weights(), window_->plain_weights), {},
                               layer.bottoms[i]->diff.write(by_axes(fast_data_->target())));
    if (spread_)
        return spread_->run(layer.tops[i]->diff.read(spread_->slopes()),
                            weights.read(spread_->weights(), window_->plain_weights),
                            layer.bottoms[i]->diff.write(spread_->data()));
    run(data_,
        {{DNNL_ARG_DIFF_DST, layer.tops[i]->diff.read(by_axes(data_desc_.diff_dst_desc()))},
         {DNNL_ARG_WEIGHTS, weights.read(data_desc_.weights_desc(), window_->plain_weights)},
         {DNNL_ARG_DIFF_SRC, layer.bottoms[i]->diff.write(by_axes(data_desc_.diff_src_desc()))}});
}

template <class Family>
void WindowKernel<Family>::backward(Layer& layer) {
    if (many_axes_) return many_axes_->backward(layer);
    for (size_t i = 0; i < layer.tops.size(); ++i) {
        const bool empty = layer.tops[i]->count() == 0;
        if (is_any(layer.learns) && !empty) backward_weights(layer, i);
        if (!layer.propagate[i]) continue;
        if (empty)
            std::fill_n(layer.bottom_diff(i), layer.bottoms[i]->count(), 0.0F);
        else
            backward_data(layer, i);
    }
}

template <class Family>
bool WindowKernel<Family>::looks_back(const Layer& layer, Role role, size_t) const {
    return is_any(layer.learns) && role == Role::bottom;
}

template <class Family>
Kernel::Followers WindowKernel<Family>::followers(const Layer& layer) const {
    const bool folds = !Family::reverse && !layer.train && layer.tops.size() == 1 &&
                       layer.options.integer("axis") == 1;
    return folds ? Followers::affine_sum_and_ending : Followers::none;
}

template <class Family>
bool WindowKernel<Family>::prefers_blocks(const Layer& layer) const {
    return !Family::reverse && has_avx512() && is_depthwise(layer);
}

template <class Family>
std::optional<double> WindowKernel<Family>::products(const Layer& layer) const {
    const Blob& windows = Family::reverse ? *layer.bottoms[0] : *layer.tops[0];
    const int64_t channels = Family::reverse
                                 ? layer.shape()[static_cast<size_t>(layer.options.integer("axis"))]
                                 : layer.options.integer("num_output");
    if (channels == 0) return 0.0;
    const auto weights = static_cast<double>(layer.params[0]->count());
    const double products = static_cast<double>(windows.count() / channels) * weights *
                            static_cast<double>(layer.bottoms.size());
    // Windows of one channel read as much as they multiply, in narrow numbers too.
    if (is_depthwise(layer)) return 2 * products;
    // Of few pixels the weights are what takes time: reading one takes as long as so many products.
    constexpr double read = 16;
    const double width = layer.int8 ? 4 : layer.net->narrow() ? 2 : 1;
    return std::max(layer.in_float32(products), read * weights / width);
}

template <class Family>
bool WindowKernel<Family>::joins(const Layer& layer, const Layer& product) const {
    return !Family::reverse && dynamic_cast<const WindowKernel*>(product.kernel.get()) &&
           FusedPass::joins(layer, product);
}

// Pictures are read in whole rows.
template <class Family>
int64_t WindowKernel<Family>::reads_every(const Layer& layer) const {
    constexpr int64_t picture = 4;
    const auto all_are = [&](const char* name, int64_t value) {
        const auto found = layer.options.integers(name);
        return found.size() == 2 &&
               std::all_of(found.begin(), found.end(), [=](int64_t one) { return one == value; });
    };
    const auto strides = layer.options.integers("stride");
    if (Family::reverse || !layer.fused_last || followers(layer) == Followers::none ||
        layer.bottoms.size() != 1 || layer.shape().size() != 4 || layer.shape()[1] <= picture ||
        !all_are("kernel", 1) || !all_are("pad", 0) || !all_are("stride", strides[0]))
        return 1;
    return strides[0] * layer.top_every;
}

REGISTER_LAYER(Convolution, WindowKernel<Convolutions>);
REGISTER_LAYER(Convolution3D, WindowKernel<Convolutions>);
REGISTER_LAYER(ConvolutionDepthwise, WindowKernel<Convolutions>);
REGISTER_LAYER(DepthwiseConvolution, WindowKernel<Convolutions>);
REGISTER_LAYER(Deconvolution, WindowKernel<Deconvolutions>);
REGISTER_LAYER(Deconvolution3D, WindowKernel<Deconvolutions>);

}  // namespace sn
