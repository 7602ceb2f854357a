#include "expanded_narrow.hpp"

#include <algorithm>

#include "../engine/bfloat16.hpp"
#include "../engine/instructions.hpp"
#include "../engine/net.hpp"
#include "depthwise.hpp"
#include "expanded.hpp"
#include "planes.hpp"

namespace sn {

using dnnl::memory;

namespace {
constexpr int64_t strip = ExpandedJob::strip;

int64_t strips_of(int64_t channels) {
    return (channels + strip - 1) / strip;
}
}  // namespace

bool ExpandedNarrow::suits(const Layer& layer, const Layer& product) {
    if (!has_avx512_bf16() || has_amx() || !Expanded::has_shape(layer, product)) return false;
    const Window points(layer, false, true), windows(product, false, true);
    const auto side = windows.weights[3];
    return points.factors == memory::data_type::bf16 &&
           windows.factors == memory::data_type::bf16 && points.source[1] % 2 == 0 &&
           side == windows.weights[4] && (side == 3 || side == 5) &&
           windows.plane().scratch() <= most_scratch;
}

ExpandedNarrow::ExpandedNarrow(const Layer& layer, const Window& window) {
    const Layer& product = *layer.fused_product;
    const Window windows(product, false, true);
    static_cast<PlaneWindow&>(job_) = windows.plane();
    job_.inputs = window.source[1];
    job_.points_end = *LoopEnding::of(layer.fused_relu != nullptr, layer.fused_ending);
    DepthwiseJob& behind = job_.windows;
    behind.channels = window.outputs, behind.side = job_.side;
    behind.end = *LoopEnding::of(product.fused_relu != nullptr, product.fused_ending);
    images_ = window.source[0];
    source_ = {window.source, memory::data_type::bf16, memory::format_tag::nhwc};
    target_ = {windows.target, memory::data_type::bf16, memory::format_tag::nhwc};
    packed_ = by_taps(windows, memory::data_type::bf16);
    window_rows_ = windows.plain_weights;
    bias_.assign(static_cast<size_t>(strips_of(window.outputs) * strip), 0.0F);
}

void ExpandedNarrow::pack_points(const Layer& layer) {
    const auto rows = points_.rows(layer);
    const int64_t inputs = job_.inputs;
    weights_.assign(bias_.size() * static_cast<size_t>(inputs), 0);
    auto* to = reinterpret_cast<BFloat16*>(weights_.data());
    for (int64_t output = 0; output < job_.windows.channels; ++output)
        for (int64_t i = 0; i < inputs; ++i)
            to[((output / strip * inputs / 2 + i / 2) * strip + output % strip) * 2 + i % 2] =
                rows.get()[output * inputs + i];
}

void ExpandedNarrow::run(const Layer& layer) {
    const Layer& product = *layer.fused_product;
    points_.follow(layer), windows_.follow(product);
    if (points_.is_stale(layer)) pack_points(layer);
    std::copy_n(points_.bias(), job_.windows.channels, bias_.begin());
    ExpandedJob job = job_;
    job.images = values_of<uint16_t>(layer.bottoms[0]->data.read(source_));
    job.points = weights_.data(), job.points_bias = bias_.data();
    job.windows.weights = values_of<uint16_t>(windows_.weights(product, packed_, window_rows_));
    job.windows.bias = windows_.bias();
    job.windows.to = values_of<uint16_t>(layer.fused_last->tops[0]->data.write(target_));
    const int64_t row = static_cast<int64_t>(sizeof(uint16_t)) * job.width * job.inputs;
    over_planes(job, {images_, strips_of(job.windows.channels), row},
                job.side * job.side + 2 * job.inputs,
                [=](int64_t plane, int64_t begin, int64_t stop, float* scratch) {
                    expanded_rows(job, plane, begin, stop, scratch);
                });
    windows_.drop_unkept();
}

}  // namespace sn
