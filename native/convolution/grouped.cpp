#include "grouped.hpp"

#include "../engine/bfloat16.hpp"
#include "../engine/instructions.hpp"
#include "../engine/net.hpp"
#include "other_term.hpp"
#include "planes.hpp"

namespace sn {

using dnnl::memory;

namespace {
constexpr int64_t lanes = PlaneWindow::lanes;

std::optional<LoopEnding> ending_of(const Layer& layer) {
    return LoopEnding::of(layer.fused_relu != nullptr, layer.fused_ending);
}
}  // namespace

// Images lie channels last, as they do where no layer has a window for each channel.
bool Grouped::suits(const Layer& layer, const Window& window) {
    const auto& shape = window.weights;  // groups, their outputs and inputs, rows and columns
    return has_avx512() && window.is_image && !layer.has_gradients() && !layer.int8 &&
           layer.bottoms.size() == 1 && layer.top_every == 1 && layer.bottom_every == 1 &&
           layer.options.integer("axis") == 1 && shape.size() == 5 && shape[1] == shape[2] &&
           (shape[1] == 4 || shape[1] == 8 || shape[1] == 16) && shape[3] == shape[4] &&
           shape[3] > 1 && shape[3] <= 7 && ending_of(layer) &&
           (window.factors == memory::data_type::bf16 ? has_avx512_bf16()
                                                      : !layer.net->blocks_channels()) &&
           window.plane().scratch() <= most_scratch;
}

Grouped::Grouped(const Layer& layer, const Window& window) {
    static_cast<PlaneWindow&>(plane_) = window.plane();
    plane_.channels = window.source[1], plane_.group = window.weights[1];
    plane_.blocks = (plane_.channels + lanes - 1) / lanes;
    plane_.end = *ending_of(layer), plane_.adds = layer.fused_sum != nullptr;
    images_ = window.source[0];
    plane_.narrow = window.factors == memory::data_type::bf16;
    source_ = {window.source, window.factors, memory::format_tag::nhwc};
    target_ = {window.target, window.factors, memory::format_tag::nhwc};
}

void Grouped::pack(const Layer& layer) {
    const auto rows = folded_.rows(layer);
    const int64_t taps = plane_.side * plane_.side, group = plane_.group;
    const int64_t together = plane_.narrow ? 2 : 1;
    weights_.assign(static_cast<size_t>(plane_.blocks * taps * group / together * lanes), 0);
    auto* singles = reinterpret_cast<float*>(weights_.data());
    auto* pairs = reinterpret_cast<BFloat16*>(weights_.data());
    for (int64_t block = 0; block < plane_.blocks; ++block)
        for (int64_t place = 0; place < lanes; ++place) {
            const int64_t output = block * lanes + plane_.channel(place);
            if (output >= plane_.channels) continue;
            for (int64_t k = 0; k < group; ++k)
                for (int64_t tap = 0; tap < taps; ++tap) {
                    const float factor = rows.get()[(output * group + k) * taps + tap];
                    const int64_t row = (block * taps + tap) * group + k;
                    if (plane_.narrow)
                        pairs[(row / 2 * lanes + place) * 2 + k % 2] = factor;
                    else
                        singles[row * lanes + place] = factor;
                }
        }
}

void Grouped::run(const Layer& layer) {
    folded_.follow(layer);
    if (folded_.is_stale(layer)) pack(layer);
    bias_.assign(static_cast<size_t>(plane_.blocks * lanes), 0.0F);
    for (int64_t i = 0; i < plane_.blocks * lanes; ++i) {
        const int64_t output = i / lanes * lanes + plane_.channel(i % lanes);
        if (output < plane_.channels) bias_[static_cast<size_t>(i)] = folded_.bias()[output];
    }
    GroupedPlane job = plane_;
    job.images = layer.bottoms[0]->data.read(source_).get_data_handle();
    const memory to =
        plane_.adds ? edit_other(layer, target_) : layer.fused_last->tops[0]->data.write(target_);
    job.to = to.get_data_handle();
    job.weights = weights_.data(), job.bias = bias_.data();
    const auto row = static_cast<int64_t>(job.narrow ? sizeof(uint16_t) : sizeof(float)) *
                     job.width * job.channels;
    over_planes(job, {images_, job.blocks, row}, job.side * job.side * job.group,
                [=](int64_t plane, int64_t begin, int64_t end, float* scratch) {
                    grouped_lines(job, plane, begin, end, scratch);
                });
}

}  // namespace sn
