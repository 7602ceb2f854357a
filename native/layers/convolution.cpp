#include "convolution.hpp"

#include <algorithm>
#include <string>

#include "../engine/instructions.hpp"
#include "../engine/net.hpp"
#include "depthwise.hpp"
#include "int8_convolution.hpp"
#include "learned_weights.hpp"
#include "nd_convolution.hpp"
#include "other_term.hpp"
#include "picture_convolution.hpp"
#include "pixels.hpp"
#include "separable.hpp"
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

bool is_any(const std::vector<bool>& of) {
    return std::find(of.begin(), of.end(), true) != of.end();
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

// Whether a layer, whatever the forks of Caffe call it, gives each channel a window of its own.
bool is_depthwise(const Layer& layer) {
    return dynamic_cast<const WindowKernel<Convolutions>*>(layer.kernel.get()) &&
           layer.options.integer("group") > 1 &&
           layer.options.integer("group") == layer.options.integer("num_output");
}

// Whether images are kept in blocks of sixteen channels: float32's depthwise convolutions, and the
// products between them, read and write those faster than channels last.
bool blocks_channels(const Layer& layer, const Window& window) {
    const auto& layers = layer.net->layers;
    return has_avx512() && window.is_image && window.factors == memory::data_type::f32 &&
           !layer.has_gradients() && std::any_of(layers.begin(), layers.end(), is_depthwise);
}

// Whether oneDNN 3.2's SSE4.1 kernel of windows of one channel would read behind the other term of
// a sum, with channels last that fill no vector (docs/decisions/0017).
bool reads_behind(const Layer& layer) {
    constexpr int64_t lanes = 8;
    return layer.fused_sum && !has_avx2() && is_depthwise(layer) &&
           layer.options.integer("num_output") % lanes != 0;
}

// The fused layers that follow, as operations of the primitive on its result.
dnnl::post_ops post_ops(const Layer& layer) {
    dnnl::post_ops made;
    if (layer.fused_sum) made.append_sum(1.0F);
    if (layer.fused_relu) made.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
    return made;
}

}  // namespace

template <class Family>
WindowKernel<Family>::WindowKernel() = default;
template <class Family>
WindowKernel<Family>::~WindowKernel() = default;

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
auto WindowKernel<Family>::make_pass(const Layer& layer, const Window& window, bool fused) const
    -> ForwardPass {
    const auto kind = layer.has_gradients() ? dnnl::prop_kind::forward_training
                                            : dnnl::prop_kind::forward_inference;
    // Only a picture's gradients are faster in the layout that it has.
    const bool last =
        !(fused && reads_behind(layer)) &&
        (kind == dnnl::prop_kind::forward_inference ? window.is_plane : window.may_be_last);
    const bool bias = !Family::adds_bias && (window.bias || (fused && !layer.fused_affine.empty()));
    auto with = attributes();
    if (fused) with.set_post_ops(post_ops(layer));
    ForwardPass made;
    made.fast = fast(window, WindowPass::Pass::forward);
    const auto describe = [&](memory::format_tag from, memory::format_tag to, bool or_none) {
        return typename Forward::primitive_desc(
            cpu(), kind, Family::algorithm, {window.source, window.factors, from},
            any(window.weights, window.factors), bias ? window.plain_bias : memory::desc(),
            {window.target, window.factors, to}, window.strides, window.dilations, window.before,
            window.after, with, or_none);
    };
    const bool is_direct = !made.fast || !fused;
    if (is_direct && blocks_channels(layer, window)) {
        constexpr auto blocks = memory::format_tag::nChw16c;
        const auto from = window.may_be_last ? blocks : memory::format_tag::any;
        if (auto found = describe(from, blocks, true); found && !is_slow(found)) made.desc = found;
    }
    // Backward passes are described by it, too.
    if (is_direct && !made.desc)
        made.desc = best(last, [&](memory::format_tag images, bool or_none) {
            return describe(images, images, or_none);
        });
    if (made.fast) {
        made.source = made.fast->source(), made.weights = made.fast->weights();
        made.target = made.fast->target();
        return made;
    }
    made.primitive = Forward(made.desc);
    made.source = made.desc.src_desc(), made.weights = made.desc.weights_desc();
    made.target = made.desc.dst_desc();
    return made;
}

template <class Family>
void WindowKernel<Family>::make_forward(const Layer& layer) {
    forward_ = make_pass(layer, *window_, false);
    if (has_fused_) fused_ = make_pass(layer, *fused_window_, true);
}

template <class Family>
void WindowKernel<Family>::make_data(const Window& window) {
    fast_data_ = fast(window, WindowPass::Pass::data);
    if (fast_data_) return;
    if (!Family::reverse) spread_ = SpreadPoints::make(window);
    if (spread_) return;
    data_desc_ = best(window.may_be_last, [&](memory::format_tag images, bool or_none) {
        return typename BackwardData::primitive_desc(
            cpu(), Family::algorithm, {window.source, window.factors, images},
            any(window.weights, window.factors), {window.target, window.factors, images},
            window.strides, window.dilations, window.before, window.after, forward_.desc,
            attributes(), or_none);
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
        return typename BackwardWeights::primitive_desc(
            cpu(), Family::algorithm, {window.source, window.factors, images},
            any(window.weights, memory::data_type::f32),
            window.bias ? window.plain_bias : memory::desc(),
            {window.target, window.factors, images}, window.strides, window.dilations,
            window.before, window.after, forward_.desc, attributes(), or_none);
    });
    weights_ = BackwardWeights(weights_desc_);
}

template <class Family>
void WindowKernel<Family>::reshape(Layer& layer) {
    many_axes_.reset();
    weight_sum_ = {}, bias_sum_ = {};
    forward_ = {}, fused_ = {};
    fast_data_.reset(), fast_weights_.reset();
    int8_.reset(), int8_fused_.reset();
    picture_.reset(), picture_fused_.reset();
    learned_.reset(), spread_.reset(), separable_.reset();
    has_fused_ = false;
    if (layer.options.integers("kernel").size() > 3) {
        many_axes_ = make_nd_convolution(Family::reverse);
        return many_axes_->reshape(layer);
    }
    window_.emplace(layer, Family::reverse, false);
    fused_window_.emplace(layer, Family::reverse, true);
    has_fused_ = !Family::reverse && layer.fused_last != nullptr;
    folded_ = {};
    if (layer.bottoms[0]->count() == 0 || layer.tops[0]->count() == 0) return;
    if (!Family::reverse && (make_picture(layer) || make_int8(layer))) return;
    if (layer.fused_product) separable_ = std::make_unique<Separable>(layer, *window_);
    make_forward(layer);
    if (layer.backward && is_any(layer.propagate)) make_data(*window_);
    if (layer.backward && is_any(layer.learns)) make_weights(*window_);
}

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
    const ForwardPass& pass = fuse ? fused_ : forward_;
    const memory weights = folds ? folded_.weights(layer, pass.weights, window_->plain_weights)
                                 : layer.params[0]->data.read(pass.weights, window_->plain_weights);
    const memory from = bottom.read(pass.source);
    Tensor& top = fuse ? layer.fused_last->tops[0]->data : layer.tops[i]->data;
    const memory to =
        fuse && layer.fused_sum ? edit_other(layer, pass.target) : top.write(pass.target);
    const float* bias = nullptr;
    if (folds)
        bias = folded_.bias();
    else if (window_->bias)
        bias = layer.param(1);
    if (pass.fast)
        return pass.fast->run(from, weights,
                              {bias, fuse && layer.fused_sum, fuse && layer.fused_relu}, to);
    Arguments arguments = {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, to}};
    if (bias && !Family::adds_bias)
        arguments.add(DNNL_ARG_BIAS, bias_view_.of(window_->plain_bias, bias));
    run(pass.primitive, arguments);
    if (bias && Family::adds_bias) add_bias(layer, bias, top);
}

template <class Family>
void WindowKernel<Family>::forward(Layer& layer) {
    if (many_axes_) return many_axes_->forward(layer);
    const bool fuse = has_fused_ && layer.fused;
    if (fuse && separable_) return separable_->run(layer);
    if (fuse && !int8_ && !picture_ && !layer.fused_affine.empty()) folded_.follow(layer);
    for (size_t i = 0; i < layer.bottoms.size(); ++i) {
        if (layer.tops[i]->count() == 0) continue;
        if (layer.bottoms[i]->count() == 0) {
            layer.refuse("has nothing to read but something to write");
        }
        forward(layer, i, fuse);
        if (fuse && layer.top_every > 1)
            layer.fused_last->tops[0]->data.storage().note_only(fused_window_->target);
    }
    folded_.drop_unkept();
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
    const memory from =
        layer.bottoms[i]->data.read(few ? fast_weights_->source() : direct.src_desc());
    const memory slopes =
        layer.tops[i]->diff.read(few ? fast_weights_->target() : direct.diff_dst_desc());
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
    if (fast_data_)
        return fast_data_->run(layer.tops[i]->diff.read(fast_data_->source()),
                               weights.read(fast_data_->weights(), window_->plain_weights), {},
                               layer.bottoms[i]->diff.write(fast_data_->target()));
    if (spread_)
        return spread_->run(layer.tops[i]->diff.read(spread_->slopes()),
                            weights.read(spread_->weights(), window_->plain_weights),
                            layer.bottoms[i]->diff.write(spread_->data()));
    run(data_, {{DNNL_ARG_DIFF_DST, layer.tops[i]->diff.read(data_desc_.diff_dst_desc())},
                {DNNL_ARG_WEIGHTS, weights.read(data_desc_.weights_desc(), window_->plain_weights)},
                {DNNL_ARG_DIFF_SRC, layer.bottoms[i]->diff.write(data_desc_.diff_src_desc())}});
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
bool WindowKernel<Family>::looks_back(const Layer& layer, const Blob& blob) const {
    return is_any(layer.learns) &&
           std::count(layer.bottoms.begin(), layer.bottoms.end(), &blob) > 0;
}

template <class Family>
Kernel::Followers WindowKernel<Family>::followers(const Layer& layer) const {
    const bool folds = !Family::reverse && !layer.train && layer.tops.size() == 1 &&
                       layer.options.integer("axis") == 1;
    return folds ? Followers::affine_sum_and_relu : Followers::none;
}

template <class Family>
std::optional<double> WindowKernel<Family>::products(const Layer& layer) const {
    const Blob& windows = Family::reverse ? *layer.bottoms[0] : *layer.tops[0];
    const int64_t channels = Family::reverse
                                 ? layer.shape()[static_cast<size_t>(layer.options.integer("axis"))]
                                 : layer.options.integer("num_output");
    if (channels == 0) return 0.0;
    const double products = static_cast<double>(windows.count() / channels) *
                            static_cast<double>(layer.params[0]->count()) *
                            static_cast<double>(layer.bottoms.size());
    // Windows of one channel read as much as they multiply, in narrow numbers too.
    const bool by_channel = layer.options.integer("group") == channels && channels > 1;
    return by_channel ? 2 * products : layer.in_float32(products);
}

template <class Family>
bool WindowKernel<Family>::joins(const Layer& layer, const Layer& product) const {
    return !Family::reverse && dynamic_cast<const WindowKernel*>(product.kernel.get()) &&
           Separable::suits(layer, product);
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

template class WindowKernel<Convolutions>;
template class WindowKernel<Deconvolutions>;

std::unique_ptr<Kernel> make_convolution() {
    return make<WindowKernel<Convolutions>>();
}
std::unique_ptr<Kernel> make_deconvolution() {
    return make<WindowKernel<Deconvolutions>>();
}

}  // namespace sn
