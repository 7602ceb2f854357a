#include "int8_convolution.hpp"

#include <algorithm>
#include <string>

#include "../engine/int8.hpp"
#include "../engine/net.hpp"
#include "other_term.hpp"
#include "pixels.hpp"

namespace sn {

using dnnl::memory;

namespace {
const Layer& last_of(const Layer& layer, bool fuse) {
    return fuse ? *layer.fused_last : layer;
}

// Whether oneDNN 3.2 would corrupt depthwise weights of eight taps while it puts them into blocks
// of eight channels, as its kernel for AVX2-VNNI has them (docs/decisions/0017).
bool loses_weights(const Window& window, const std::string& kernel) {
    int64_t taps = 1;
    for (size_t i = 3; i < window.weights.size(); ++i) taps *= window.weights[i];
    return window.depthwise && taps == 8 && kernel.find("avx2") != std::string::npos;
}

}  // namespace

std::optional<Int8> stored_in_int8(const Layer& layer, const Window& window, bool fuse) {
    const Layer& last = last_of(layer, fuse);
    const Blob& top = *last.tops[0];
    if (!may_store_int8(last)) return std::nullopt;
    return Int8{last_axis(window.target, int8_type(top.is_signed)), top.step};
}

bool Int8Convolution::suits(const Layer& layer, const Window& window) {
    return layer.int8 && !layer.has_gradients() &&
           (window.source.size() == 3 || window.source.size() == 4) &&
           layer.options.integer("axis") == 1 &&
           std::all_of(layer.bottoms.begin(), layer.bottoms.end(),
                       [](const Blob* bottom) { return bottom->step > 0; });
}

std::unique_ptr<Int8Convolution> Int8Convolution::make(const Layer& layer, const Window& window,
                                                       bool fuse) {
    std::unique_ptr<Int8Convolution> made(new Int8Convolution(layer, window, fuse));
    return made->primitive_ ? std::move(made) : nullptr;
}

Int8Convolution::Int8Convolution(const Layer& layer, const Window& window, bool fuse)
    : fuse_(fuse), order_(window.plain_weights), outputs_(window.outputs) {
    const Blob* bottom = layer.bottoms[0];
    const bool sums = fuse && layer.fused_sum;
    const auto stored = stored_in_int8(layer, window, fuse);
    const bool narrow = stored && (!sums || layer.fused_other->step > 0);
    auto with = attributes();
    with.set_scales_mask(DNNL_ARG_SRC, 0);
    const bool grouped = window.weights.size() > window.source.size();
    with.set_scales_mask(DNNL_ARG_WEIGHTS, grouped ? 3 : 1);
    if (narrow) with.set_scales_mask(DNNL_ARG_DST, 0);
    dnnl::post_ops after;
    if (sums && narrow)
        after.append_sum(layer.fused_other->step, 0, int8_type(layer.fused_other->is_signed));
    else if (sums)
        after.append_sum(1.0F);
    if (fuse && layer.fused_relu) after.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
    if (const auto& end = layer.fused_ending; fuse && end)
        after.append_eltwise(end->algorithm, end->alpha, end->beta);
    with.set_post_ops(after);
    const memory::desc values = last_axis(window.source, int8_type(bottom->is_signed));
    const memory::desc weights(window.weights, memory::data_type::s8, memory::format_tag::any);
    const auto results = narrow ? stored->desc : last_axis(window.target, memory::data_type::f32);
    description_ = {cpu(),
                    dnnl::prop_kind::forward_inference,
                    dnnl::algorithm::convolution_direct,
                    values,
                    weights,
                    window.plain_bias,
                    results,
                    window.strides,
                    window.dilations,
                    window.before,
                    window.after,
                    with,
                    true};
    if (!description_) return;
    const std::string kernel = description_.impl_info_str();
    if (kernel.find("ref") != std::string::npos || loses_weights(window, kernel)) return;
    primitive_ = dnnl::convolution_forward(description_);
    packed_ = description_.weights_desc(), results_ = description_.dst_desc();
    weights_ = layer.pack<Weights>(packed_, fuse);
    weights_->folded.correct_int8();
    one_ = plain_desc({1}), each_ = plain_desc({outputs_});
    source_ = {values, bottom->step};
    if (!narrow) return;
    target_ = stored;
    if (sums)
        other_ = {last_axis(window.target, int8_type(layer.fused_other->is_signed)),
                  layer.fused_other->step};
}

memory Int8Convolution::weights(const Layer& layer) {
    FoldedWeights& folded = weights_->folded;
    if (fuse_)
        folded.follow(layer);
    else
        folded.follow_alone(layer);
    if (!weights_->pages) weights_->pages = pages().take(packed_.get_size());
    const memory& made = packed_view_.of(packed_, weights_->pages.get());
    if (!folded.is_stale(layer)) return made;
    const auto rows = folded.rows(layer);
    const int64_t row = layer.params[0]->count() / outputs_;
    const auto numbers = round_rows(rows.get(), outputs_, row, weights_->steps);
    const memory::desc order(order_.get_dims(), memory::data_type::s8, order_.get_strides());
    weights_->pack.run({order, cpu(), const_cast<int8_t*>(numbers.data())}, made);
    return made;
}

memory Int8Convolution::target(const Layer& layer, size_t i) {
    Tensor& top = fuse_ ? layer.fused_last->tops[0]->data : layer.tops[i]->data;
    const memory::desc& wanted = results_;
    if (!fuse_ || !layer.fused_sum) return target_ ? top.write(*target_) : top.write(wanted);
    return target_ ? replace_other(layer, *other_, *target_) : edit_other(layer, wanted);
}

void Int8Convolution::run(Layer& layer, const Tensor& bottom, size_t i) {
    const memory packed = weights(layer);
    const memory from = bottom.read(source_), to = target(layer, i);
    Arguments arguments = {
        {DNNL_ARG_SRC, from},
        {DNNL_ARG_WEIGHTS, packed},
        {DNNL_ARG_BIAS, bias_.of(each_, weights_->folded.bias())},
        {DNNL_ARG_DST, to},
        {DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, source_step_.of(one_, &source_.step)},
        {DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, weight_steps_.of(each_, weights_->steps.data())}};
    if (target_)
        arguments.add(DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, target_step_.of(one_, &target_->step));
    sn::run(primitive_, arguments);
}

}  // namespace sn
