#include "folded.hpp"

#include <cmath>

#include "parallel.hpp"
#include "pass.hpp"

namespace sn {

namespace {
// y = factor x + shift, for each channel.
struct Affine {
    std::vector<double> factors, shifts;

    Affine(size_t channels, const float* bias) : factors(channels, 1.0), shifts(channels, 0.0) {
        if (bias) shifts.assign(bias, bias + channels);
    }
    // The layer's y = factor x + shift behind this one.
    template <class Factor, class Shift>
    void then(Factor&& factor, Shift&& shift) {
        for (size_t c = 0; c < factors.size(); ++c) {
            factors[c] *= factor(c);
            shifts[c] = shifts[c] * factor(c) + shift(c);
        }
    }
    void then(const Layer& layer);
};

// Caffe: batch_norm_layer.cpp; the blobs are running sums, the third counts what went in.
void normalise(Affine& affine, const Layer& layer) {
    const float *mean = layer.param(0), *variance = layer.param(1), sum = layer.param(2)[0];
    const double share = sum == 0.0F ? 0.0 : 1.0 / static_cast<double>(sum);
    const double eps = layer.options.real("eps");
    const auto factor = [=](size_t c) {
        return 1.0 / std::sqrt(static_cast<double>(variance[c]) * share + eps);
    };
    affine.then(factor,
                [=](size_t c) { return -static_cast<double>(mean[c]) * share * factor(c); });
}

void Affine::then(const Layer& layer) {
    if (layer.type == "BatchNorm") return normalise(*this, layer);
    const bool scales = layer.type == "Scale";
    const float* factor = scales ? layer.param(0) : nullptr;
    const size_t place = scales ? 1 : 0;
    const float* shift = place < layer.params.size() ? layer.param(place) : nullptr;
    then([=](size_t c) { return factor ? static_cast<double>(factor[c]) : 1.0; },
         [=](size_t c) { return shift ? static_cast<double>(shift[c]) : 0.0; });
}

std::vector<float> floats(const std::vector<double>& values) {
    return {values.begin(), values.end()};
}
}  // namespace

void Folded::follow(const Layer& head) {
    const auto channels = static_cast<size_t>(head.options.integer("num_output"));
    Affine affine(channels, head.params.size() > 1 ? head.param(1) : nullptr);
    for (const Layer* layer : head.fused_affine) affine.then(*layer);
    shifts_ = floats(affine.shifts);
    auto factors = floats(affine.factors);
    if (factors == factors_) return;
    factors_ = std::move(factors);
    version_ = 0;
}

std::shared_ptr<float> Folded::rows(const Layer& head) const {
    const auto channels = static_cast<int64_t>(factors_.size());
    const int64_t row = head.params[0]->count() / channels;
    const float *from = head.param(0), *factors = factors_.data();
    auto made = pages().take(static_cast<size_t>(channels * row) * sizeof(float));
    float* to = made.get();
    parallel(
        channels,
        [=](int64_t begin, int64_t end) {
            for (int64_t c = begin; c < end; ++c)
                for (int64_t i = c * row; i < (c + 1) * row; ++i) to[i] = from[i] * factors[c];
        },
        row);
    return made;
}

dnnl::memory Folded::weights(const Layer& head, const dnnl::memory::desc& wanted,
                             const dnnl::memory::desc& rows) {
    const uint64_t version = head.params[0]->data.storage().version();
    if (!pages_) pages_ = pages().take(wanted.get_size());
    dnnl::memory made(wanted, cpu(), pages_.get());
    if (version_ == 0 || version_ != version) {
        const auto scaled = this->rows(head);
        fill_.run({rows, cpu(), scaled.get()}, made);
        version_ = version;
    }
    return made;
}

}  // namespace sn
