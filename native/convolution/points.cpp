#include "points.hpp"

#include <algorithm>

#include "../engine/bfloat16.hpp"
#include "../engine/instructions.hpp"
#include "../engine/parallel.hpp"

namespace sn {

using dnnl::memory;

namespace {
bool are(const memory::dims& values, int64_t wanted) {
    return std::all_of(values.begin(), values.end(), [=](int64_t one) { return one == wanted; });
}
}  // namespace

bool Points::suits(const Layer& layer, const Window& window) {
    if (!window.is_image || layer.has_gradients() || window.depthwise ||
        window.factors != memory::data_type::bf16 || !has_avx512_bf16() || has_amx() ||
        window.weights.size() != 4 || window.weights[2] != 1 || window.weights[3] != 1 ||
        !are(window.strides, 1) || !are(window.before, 0) || !are(window.after, 0) ||
        window.source[1] % 2 != 0)
        return false;
    // Of wide pixels oneDNN's kernel takes less time.
    constexpr int64_t few_inputs = 128, few_outputs = 32;
    const bool is_one_pixel = window.source[2] * window.source[3] == 1;
    return is_one_pixel || (window.source[1] <= few_inputs && window.outputs <= few_outputs);
}

Points::Points(const Window& window)
    : pixels_(window.source[0] * window.source[2] * window.source[3]) {
    source_ = {window.source, memory::data_type::bf16, memory::format_tag::nhwc};
    target_ = {window.target, memory::data_type::bf16, memory::format_tag::nhwc};
    weights_ = {window.weights, memory::data_type::bf16, memory::format_tag::ABcd16b32a2b};
    job_.inputs = window.source[1], job_.outputs = window.outputs;
    constexpr int64_t block = 32;
    job_.strip_size = (job_.inputs + block - 1) / block * block * PointsJob::strip;
}

void Points::run(const memory& source, const memory& weights, const End& end,
                 const memory& target) const {
    PointsJob job = job_;
    job.images = values_of<uint16_t>(source), job.to = values_of<uint16_t>(target);
    job.weights = values_of<uint16_t>(weights);
    job.bias = end.bias, job.adds = end.adds;
    job.end = end.relu ? *LoopEnding::of(true, {}) : end.function;
    constexpr int64_t together = 14;
    const int64_t strips = job.strips(), pixels = pixels_,
                  tiles = (pixels + together - 1) / together;
    const int64_t cost = job.inputs * PointsJob::strip / 8;
    if (tiles >= 4 * threads())
        return parallel(tiles, cost * strips * together, [=](int64_t begin, int64_t stop) {
            point_rows(job, {begin * together, std::min(pixels, stop * together), 0, strips});
        });
    parallel(strips, cost * pixels,
             [=](int64_t begin, int64_t stop) { point_rows(job, {0, pixels, begin, stop}); });
}

}  // namespace sn
