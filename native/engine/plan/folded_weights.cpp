#include "folded_weights.hpp"

#include <algorithm>
#include <cstring>

#include "../affine.hpp"
#include "../parallel.hpp"
#include "../pass.hpp"

namespace sn {

namespace {
std::vector<float> floats(const std::vector<double>& values) {
    return {values.begin(), values.end()};
}
}  // namespace

void FoldedWeights::follow(const Layer& head) {
    follow(head, head.fused_affine);
}

void FoldedWeights::follow_alone(const Layer& head) {
    follow(head, {});
}

// Comparing the values takes a tenth of the time that roots and quotients of each channel take.
bool FoldedWeights::note(const Layer& layer, size_t first, size_t& at) {
    bool changed = false;
    for (size_t i = first; i < layer.params.size(); ++i) {
        const auto count = static_cast<size_t>(layer.params[i]->count());
        if (count == 0) continue;
        const float* values = layer.param(i);
        if (seen_.size() < at + count) seen_.resize(at + count), changed = true;
        if (changed || std::memcmp(&seen_[at], values, count * sizeof(float)) != 0) {
            std::copy_n(values, count, &seen_[at]);
            changed = true;
        }
        at += count;
    }
    return changed;
}

bool FoldedWeights::note_all(const Layer& head, const std::vector<Layer*>& affine_layers) {
    size_t at = 0;
    bool changed = note(head, 1, at);
    for (const Layer* layer : affine_layers) changed = note(*layer, 0, at) || changed;
    return changed || factors_.empty();
}

void FoldedWeights::follow(const Layer& head, const std::vector<Layer*>& affine_layers) {
    if (!note_all(head, affine_layers)) return;
    const auto channels = static_cast<size_t>(head.options.integer("num_output"));
    Affine affine(channels, head.params.size() > 1 ? head.param(1) : nullptr);
    if (corrects_int8_) {
        for (size_t c = 0; c < std::min(channels, head.int8_bias.size()); ++c)
            affine.shifts[c] += head.int8_bias[c];
    }
    for (const Layer* layer : affine_layers) layer->kernel->fold_into(affine, *layer);
    // Shifts stay where they are for those who have noted that.
    if (auto shifts = floats(affine.shifts); shifts != shifts_) shifts_ = std::move(shifts);
    auto factors = floats(affine.factors);
    if (factors == factors_) return;
    factors_ = std::move(factors);
    version_ = 0;
}

std::shared_ptr<float> FoldedWeights::rows(const Layer& head) const {
    const auto channels = static_cast<int64_t>(factors_.size());
    const int64_t row = head.params[0]->count() / channels;
    const float *from = head.param(0), *factors = factors_.data();
    auto made = pages().take(static_cast<size_t>(channels * row) * sizeof(float));
    float* to = made.get();
    parallel_each(channels, row, [=](int64_t c) {
        for (int64_t i = c * row; i < (c + 1) * row; ++i) to[i] = from[i] * factors[c];
    });
    return made;
}

bool FoldedWeights::is_stale(const Layer& head) {
    const uint64_t version = head.params[0]->data.storage().version();
    const bool stale = version_ == 0 || version_ != version;
    version_ = version;
    return stale;
}

dnnl::memory FoldedWeights::weights(const Layer& head, const dnnl::memory::desc& wanted,
                                    const dnnl::memory::desc& rows) {
    if (!pages_ || !view_.is_of(wanted)) pages_ = pages().take(wanted.get_size()), version_ = 0;
    const dnnl::memory& made = view_.of(wanted, pages_.get());
    if (is_stale(head)) {
        const auto scaled = this->rows(head);
        fill_.run({rows, cpu(), scaled.get()}, made);
    }
    return made;
}

}  // namespace sn
