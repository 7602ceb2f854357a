#include "depthwise_planes.hpp"

#include "../engine/bfloat16.hpp"
#include "../engine/instructions.hpp"
#include "planes.hpp"

namespace sn {

using dnnl::memory;

namespace {
constexpr int64_t lanes = 16;

DepthwisePlane plane_of(const Window& window) {
    DepthwisePlane made{};
    static_cast<PlaneWindow&>(made) = window.plane();
    made.channels = window.source[1], made.blocks = (made.channels + lanes - 1) / lanes;
    return made;
}

std::optional<LoopEnding> ending_of(const Layer& layer, bool fused) {
    return fused ? LoopEnding::of(layer.fused_relu != nullptr, layer.fused_ending) : LoopEnding{};
}
}  // namespace

bool DepthwisePlanes::suits(const Layer& layer, const Window& window, bool fused) {
    const auto& shape = window.weights;  // groups, their outputs and inputs, rows and columns
    return has_avx512() && window.depthwise && window.is_image && !layer.has_gradients() &&
           window.factors == memory::data_type::f32 && shape[3] == shape[4] &&
           (shape[3] == 3 || shape[3] == 5 || shape[3] == 7) && ending_of(layer, fused) &&
           plane_of(window).scratch() <= most_scratch;
}

DepthwisePlanes::DepthwisePlanes(const Layer& layer, const Window& window, bool fused)
    : images_(window.source[0]), plane_(plane_of(window)) {
    plane_.end = *ending_of(layer, fused);
    source_ = {window.source, memory::data_type::f32, memory::format_tag::nChw16c};
    target_ = {window.target, memory::data_type::f32, memory::format_tag::nChw16c};
    weights_ = {window.weights, memory::data_type::f32, memory::format_tag::Goihw16g};
}

void DepthwisePlanes::run(const memory& source, const memory& weights, const End& end,
                          const memory& target) const {
    run(source, {}, weights, end, target);
}

void DepthwisePlanes::run(const memory& source, const DepthwisePoints& points,
                          const memory& weights, const End& end, const memory& target) const {
    DepthwisePlane job = plane_;
    job.points = points;
    job.images = values_of<float>(source), job.weights = values_of<float>(weights);
    job.to = values_of<float>(target), job.bias = end.bias, job.adds = end.adds;
    over_planes(job, {images_, job.blocks}, job.side * job.side + 4 * points.channels,
                [=](int64_t plane, int64_t begin, int64_t stop, float* scratch) {
                    depthwise_lines(job, plane, begin, stop, scratch);
                });
}

}  // namespace sn
