#include "depthwise_planes.hpp"

#include <algorithm>

#include "../engine/bfloat16.hpp"
#include "../engine/instructions.hpp"
#include "../engine/parallel.hpp"
#include "../engine/pass.hpp"

namespace sn {

using dnnl::memory;

namespace {
constexpr int64_t lanes = 16;
// Of the largest memory of a thread, in numbers: most of the second cache.
constexpr int64_t most = 128 * 1024;

DepthwisePlane plane_of(const Window& window) {
    DepthwisePlane made{};
    made.channels = window.source[1], made.blocks = (made.channels + lanes - 1) / lanes;
    made.height = window.source[2], made.width = window.source[3];
    made.rows = window.target[2], made.columns = window.target[3], made.side = window.weights[3];
    made.stride_y = window.strides[0], made.stride_x = window.strides[1];
    made.pad_y = window.before[0], made.pad_x = window.before[1];
    made.dilation_y = window.dilations[0] + 1, made.dilation_x = window.dilations[1] + 1;
    return made;
}

std::optional<LoopEnding> ending_of(const Layer& layer, bool fused) {
    return fused ? LoopEnding::of(layer.fused_relu != nullptr, layer.fused_ending) : LoopEnding{};
}
}  // namespace

// The last pixels of a row are computed by the seven or fourteen.
int64_t DepthwisePlane::line() const {
    const int64_t each = columns >= 14 ? 14 : 7, all = (columns + each - 1) / each * each;
    return (all - 1) * stride_x + (side - 1) * dilation_x + 1;
}

bool DepthwisePlanes::suits(const Layer& layer, const Window& window, bool fused) {
    const auto& shape = window.weights;  // groups, their outputs and inputs, rows and columns
    return has_avx512() && window.depthwise && window.is_image && !layer.has_gradients() &&
           window.factors == memory::data_type::f32 && shape[3] == shape[4] &&
           (shape[3] == 3 || shape[3] == 5 || shape[3] == 7) && ending_of(layer, fused) &&
           plane_of(window).scratch() <= most;
}

DepthwisePlanes::DepthwisePlanes(const Layer& layer, const Window& window, bool fused)
    : planes_(window.source[0] * ((window.source[1] + lanes - 1) / lanes)),
      plane_(plane_of(window)) {
    plane_.end = *ending_of(layer, fused);
    source_ = {window.source, memory::data_type::f32, memory::format_tag::nChw16c};
    target_ = {window.target, memory::data_type::f32, memory::format_tag::nChw16c};
    weights_ = {window.weights, memory::data_type::f32, memory::format_tag::Goihw16g};
}

void DepthwisePlanes::run(const memory& source, const memory& weights, const End& end,
                          const memory& target) const {
    run(source, {}, weights, end, target);
}

// Where there are fewer planes than threads need, these take parts of planes.
void DepthwisePlanes::run(const memory& source, const DepthwisePoints& points,
                          const memory& weights, const End& end, const memory& target) const {
    DepthwisePlane job = plane_;
    job.points = points;
    job.images = values_of<float>(source), job.weights = values_of<float>(weights);
    job.to = values_of<float>(target), job.bias = end.bias, job.adds = end.adds;
    constexpr int64_t few = 8;
    const int64_t wanted = (4 * threads() + planes_ - 1) / planes_;
    const int64_t strips = std::clamp<int64_t>(job.rows / few, 1, std::max<int64_t>(1, wanted));
    parallel(
        planes_ * strips,
        [=](int64_t begin, int64_t stop) {
            std::vector<float> memory(static_cast<size_t>(job.scratch() + lanes), 0.0F);
            float* scratch = memory.data();
            while (reinterpret_cast<uintptr_t>(scratch) % 64 != 0) ++scratch;
            for (int64_t item = begin; item < stop; ++item) {
                const int64_t strip = item % strips;
                depthwise_lines(job, item / strips, strip * job.rows / strips,
                                (strip + 1) * job.rows / strips, scratch);
            }
        },
        job.rows / strips * job.columns * lanes * (job.side * job.side / 4 + points.channels));
}

}  // namespace sn
