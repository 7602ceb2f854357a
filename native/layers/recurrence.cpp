#include "recurrence.hpp"

#include "../engine/gemm.hpp"
#include "rows.hpp"

namespace sn {

namespace {
// To parameter i's gradient (m × n) op(a) b, of `rows` rows each.
void add_product(const Layer& layer, size_t i, int64_t m, int64_t n, int64_t rows, const float* a,
                 const float* b) {
    bool adds = true;
    float* sums = layer.param_diff(i, adds);
    gemm(true, false, m, n, rows, 1, a, b, adds ? 1.0F : 0.0F, sums);
}
}  // namespace

void Recurrence::reshape(const Layer& layer, int64_t gates) {
    const Options& options = layer.options;
    steps = options.integer("steps"), streams = options.integer("streams");
    units = options.integer("num_output"), width = gates * units;
    inputs_ = options.integer("inputs"), fixed_ = options.integer("static_inputs");
    exposed_ = options.flag("expose_hidden");
    const auto all = static_cast<size_t>(steps * streams);
    sums.resize(all * static_cast<size_t>(width));
    dsums.resize(layer.backward ? sums.size() : 0);
    conted_.resize(all * static_cast<size_t>(units));
    static_sums_.resize(static_cast<size_t>(fixed_ > 0 ? streams * width : 0));
    states_.resize(static_cast<size_t>(options.integer("states")));
    for (auto& state : states_) state.resize(state_size());
}

void Recurrence::transform(const Layer& layer) {
    const float* bias = layer.param(1);
    const int64_t rows = steps * streams, columns = width;
    const float* fixed = nullptr;
    if (fixed_ > 0) {
        gemm(false, true, streams, width, fixed_, 1, layer.bottom(2), layer.param(static_param_), 0,
             static_sums_.data());
        fixed = static_sums_.data();
    }
    float* to = sums.data();
    const int64_t many = streams;
    parallel(
        rows,
        [=](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
                std::copy_n(bias, columns, to + r * columns);
                const float* more = fixed ? fixed + r % many * columns : nullptr;
                for (int64_t i = 0; more && i < columns; ++i) to[r * columns + i] += more[i];
            }
        },
        columns);
    gemm(false, true, rows, width, inputs_, 1, layer.bottom(0), layer.param(0), 1, to);
}

const float* Recurrence::first(const Layer& layer, size_t state) const {
    if (exposed_) return layer.bottom(layer.bottoms.size() - states_.size() + state);
    return states_[state].values.data();
}

void Recurrence::last(const Layer& layer, size_t state, const float* values) {
    float* to = exposed_ ? layer.top(1 + state) : states_[state].values.data();
    if (to != values) std::copy_n(values, state_size(), to);
}

void Recurrence::recur(const Layer& layer, int64_t t, const float* hidden) {
    const float* scale = cont(layer, t);
    float* conted = conted_.data() + t * state_size();
    for (int64_t n = 0; n < streams; ++n)
        for (int64_t i = n * units; i < (n + 1) * units; ++i) conted[i] = scale[n] * hidden[i];
    gemm(false, true, streams, width, units, 1, conted, layer.param(hidden_param()), 1,
         sums.data() + t * streams * width);
}

void Recurrence::reach_back(const Layer& layer, int64_t t, float* dhidden) const {
    gemm(false, false, streams, units, width, 1, dsums.data() + t * streams * width,
         layer.param(hidden_param()), 0, dhidden);
    const float* scale = cont(layer, t);
    for (int64_t n = 0; n < streams; ++n)
        for (int64_t i = n * units; i < (n + 1) * units; ++i) dhidden[i] *= scale[n];
}

void Recurrence::gradients(const Layer& layer) {
    const int64_t rows = steps * streams;
    const size_t hidden = hidden_param();
    if (layer.learns[0]) add_product(layer, 0, width, inputs_, rows, dsums.data(), layer.bottom(0));
    if (layer.learns[1]) add_column_sums(dsums.data(), rows, width, layer.param_diff(1));
    if (layer.learns[hidden])
        add_product(layer, hidden, width, units, rows, dsums.data(), conted_.data());
    if (layer.propagate[0])
        gemm(false, false, rows, inputs_, width, 1, dsums.data(), layer.param(0), 0,
             layer.bottom_diff(0));
    if (fixed_ > 0) backward_static(layer);
    for (size_t i = fixed_ > 0 ? 3 : 2; i < layer.bottoms.size(); ++i)
        if (layer.propagate[i]) clear(layer.bottom_diff(i), layer.bottoms[i]->count());
}

void Recurrence::backward_static(const Layer& layer) {
    std::fill(static_sums_.begin(), static_sums_.end(), 0.0F);
    add_column_sums(dsums.data(), steps, streams * width, static_sums_.data());
    if (layer.learns[static_param_])
        add_product(layer, static_param_, width, fixed_, streams, static_sums_.data(),
                    layer.bottom(2));
    if (layer.propagate[2])
        gemm(false, false, streams, fixed_, width, 1, static_sums_.data(),
             layer.param(static_param_), 0, layer.bottom_diff(2));
}

}  // namespace sn
