#include "plane_pool.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

namespace sn {

namespace {
PlanePool::Method method_of(const std::string& name, bool train) {
    if (name == "max") return PlanePool::Method::max;
    if (name == "ave") return PlanePool::Method::ave;
    if (name != "stochastic") throw Refusal("does not know the method " + name);
    return train ? PlanePool::Method::sample : PlanePool::Method::expect;
}
}  // namespace

PlanePool::PlanePool(const Layer& layer, const std::string& prefix, int64_t rows_out,
                     int64_t columns_out) {
    const Options& options = layer.options;
    const Shape& shape = layer.bottoms[0]->shape();
    const auto kernel = options.integers(prefix + "kernel");
    const auto stride = options.integers(prefix + "stride"), pad = options.integers(prefix + "pad");
    method_ = method_of(options.text(prefix + "method"), layer.train);
    rows_ = {shape[2], rows_out, kernel[0], stride[0], pad[0]};
    columns_ = {shape[3], columns_out, kernel[1], stride[1], pad[1]};
}

bool PlanePool::has_empty() const {
    const auto beyond = [](const Span& span) {
        return (span.outputs - 1) * span.stride - span.pad >= span.size || span.end(0) <= 0;
    };
    return beyond(rows_) || beyond(columns_);
}

// body(number, top, bottom, left, right) for each window.
template <class F>
void PlanePool::windows(F&& body) const {
    for (int64_t r = 0, number = 0; r < rows_.outputs; ++r)
        for (int64_t c = 0; c < columns_.outputs; ++c, ++number)
            body(number, rows_.begin(r), rows_.end(r), columns_.begin(c), columns_.end(c));
}

// The first maximum wins.
void PlanePool::forward_max(const float* in, float* out, int32_t* picked) const {
    const int64_t width = columns_.size;
    windows([=](int64_t o, int64_t top, int64_t bottom, int64_t left, int64_t right) {
        float best = -FLT_MAX;
        int64_t at = -1;
        for (int64_t y = top; y < bottom; ++y)
            for (int64_t i = y * width + left; i < y * width + right; ++i)
                if (in[i] > best || std::isnan(in[i])) best = in[i], at = i;
        out[o] = best;
        if (picked) picked[o] = static_cast<int32_t>(at);
    });
}

void PlanePool::forward_ave(const float* in, float* out) const {
    const int64_t width = columns_.size;
    windows([=](int64_t o, int64_t top, int64_t bottom, int64_t left, int64_t right) {
        float sum = 0;
        for (int64_t y = top; y < bottom; ++y)
            for (int64_t i = y * width + left; i < y * width + right; ++i) sum += in[i];
        const int64_t row = o / columns_.outputs, column = o % columns_.outputs;
        out[o] = sum / static_cast<float>(rows_.padded(row) * columns_.padded(column));
    });
}

// A value is picked with a probability in proportion to it.
void PlanePool::forward_sample(const float* in, float* out, int32_t* picked,
                               const Random::Draw& draw, int64_t number) const {
    const int64_t width = columns_.size;
    windows([&](int64_t o, int64_t top, int64_t bottom, int64_t left, int64_t right) {
        double total = 0;
        for (int64_t y = top; y < bottom; ++y)
            for (int64_t i = y * width + left; i < y * width + right; ++i)
                total += static_cast<double>(in[i]);
        const double goal =
            total * static_cast<double>(draw.uniform(static_cast<uint64_t>(number + o)));
        const bool empty = top >= bottom || left >= right;
        int64_t at = empty ? -1 : top * width + left;
        double sum = 0;
        bool passed = std::isnan(total);
        for (int64_t y = top; y < bottom && !passed; ++y)
            for (int64_t i = y * width + left; i < y * width + right && !passed; ++i) {
                sum += static_cast<double>(in[i]);
                passed = sum > goal;
                if (passed) at = i;
            }
        out[o] = empty               ? 0.0F
                 : std::isnan(total) ? std::numeric_limits<float>::quiet_NaN()
                                     : in[at];
        if (picked) picked[o] = static_cast<int32_t>(at);
    });
}

// The mean of what sampling would give.
void PlanePool::forward_expect(const float* in, float* out) const {
    const int64_t width = columns_.size;
    windows([=](int64_t o, int64_t top, int64_t bottom, int64_t left, int64_t right) {
        float sum = FLT_MIN, squares = 0;
        for (int64_t y = top; y < bottom; ++y)
            for (int64_t i = y * width + left; i < y * width + right; ++i)
                sum += in[i], squares += in[i] * in[i];
        out[o] = squares / sum;
    });
}

void PlanePool::forward(const float* in, float* out, int32_t* picked, const Random::Draw& draw,
                        int64_t number) const {
    switch (method_) {
        case Method::max:
            return forward_max(in, out, picked);
        case Method::ave:
            return forward_ave(in, out);
        case Method::sample:
            return forward_sample(in, out, picked, draw, number);
        case Method::expect:
            return forward_expect(in, out);
    }
}

void PlanePool::backward(const float* in, const float* out, const int32_t* picked,
                         const float* dout, float* din) const {
    if (picks()) {
        for (int64_t o = 0; o < outputs(); ++o)
            if (picked[o] >= 0) din[picked[o]] += dout[o];
        return;
    }
    const int64_t width = columns_.size;
    const bool average = method_ == Method::ave;
    windows([=](int64_t o, int64_t top, int64_t bottom, int64_t left, int64_t right) {
        const int64_t row = o / columns_.outputs, column = o % columns_.outputs;
        const float share =
            average ? dout[o] / static_cast<float>(rows_.padded(row) * columns_.padded(column)) : 0;
        float sum = FLT_MIN;
        for (int64_t y = top; y < bottom; ++y)
            for (int64_t i = y * width + left; i < y * width + right; ++i)
                average ? din[i] += share : sum += in[i];
        if (average) return;
        for (int64_t y = top; y < bottom; ++y)
            for (int64_t i = y * width + left; i < y * width + right; ++i)
                din[i] += dout[o] * (2 * in[i] - out[o]) / sum;
    });
}

}  // namespace sn
