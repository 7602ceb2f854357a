// Softmax over the middle one of three axes, in plain rows: the first half of two losses.
#pragma once

#include <algorithm>
#include <vector>

#include "../engine/exponential.hpp"
#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

extern "C" {
#include "../ndarray/kernel.h"
}

namespace sn {

SN_KERNEL inline void softmax_row(const float* x, float* p, int64_t n) {
    float most = x[0];
#pragma omp simd reduction(max : most)
    for (int64_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
    double sum = 0;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) p[i] = fast_exp(x[i] - most);
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(p[i]);
    const auto by = static_cast<float>(sum);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) p[i] /= by;
}

class Probabilities {
   public:
    int64_t outer = 0, channels = 0, inner = 0;

    void reshape(const Layer& layer) {
        outer = layer.options.integer("outer");
        channels = layer.options.integer("channels");
        inner = layer.options.integer("inner");
        values_.resize(static_cast<size_t>(outer * channels * inner));
    }

    const float* values() const { return values_.data(); }
    int64_t count() const { return outer * channels * inner; }

    // One value for each class of place (o, i): at(o, c, i).
    int64_t at(int64_t o, int64_t c, int64_t i) const { return (o * channels + c) * inner + i; }

    void compute(const float* x) {
        if (channels == 0) return;
        if (inner == 1) return compute_rows(x);
        const int64_t spans = (inner + span - 1) / span;
        parallel_each(outer * spans, channels * std::min(inner, span) * 12, [&](int64_t s) {
            const int64_t from = s % spans * span, to = std::min(inner, from + span);
            columns(x + at(s / spans, 0, from), values_.data() + at(s / spans, 0, from), to - from);
        });
    }

   private:
    static constexpr int64_t span = 256;

    // The classes of a place lie side by side.
    void compute_rows(const float* x) {
        float* p = values_.data();
        const int64_t width = channels;
        parallel_each(outer, channels * 12,
                      [=](int64_t o) { softmax_row(x + o * width, p + o * width, width); });
    }

    // Neighbouring places side by side: `width` of them, `inner` apart from class to class.
    void columns(const float* x, float* p, int64_t width) const {
        float most[span];
        double sum[span];
        std::copy(x, x + width, most);
        for (int64_t c = 1; c < channels; ++c)
            for (int64_t i = 0; i < width; ++i) {
                const float v = x[c * inner + i];
                most[i] = v > most[i] ? v : most[i];
            }
        std::fill(sum, sum + width, 0.0);
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t i = 0; i < width; ++i)
                p[c * inner + i] = fast_exp(x[c * inner + i] - most[i]);
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t i = 0; i < width; ++i) sum[i] += static_cast<double>(p[c * inner + i]);
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t i = 0; i < width; ++i) p[c * inner + i] /= static_cast<float>(sum[i]);
    }

    std::vector<float> values_;
};

}  // namespace sn
