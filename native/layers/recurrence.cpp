#include "recurrence.hpp"

#include <algorithm>

#include "../engine/matmul/gemm.hpp"
#include "../engine/net.hpp"
#include "rows.hpp"

namespace sn {

void Recurrence::reshape(const Layer& layer, int64_t gates) {
    const Options& options = layer.options;
    steps = options.integer("steps"), streams = options.integer("streams");
    units = options.integer("num_output"), width = gates * units;
    inputs_ = options.integer("inputs"), fixed_ = options.integer("static_inputs");
    exposed_ = options.flag("expose_hidden");
    const int64_t rows = steps * streams;
    sums.reshape({rows, width});
    dsums.reshape({layer.backward ? rows : 0, width});
    conted_.reshape({rows, units});
    static_sums_.resize(static_cast<size_t>(fixed_ > 0 ? streams * width : 0));
    states_.resize(static_cast<size_t>(options.integer("states")));
    for (auto& state : states_) state.resize(state_size());
    make_products(layer);
}

// The steps depend on each other, so that each needs a product of its own with W_h; what W_x and
// the weights' gradients need is one product over all steps.
void Recurrence::make_products(const Layer& layer) {
    const auto factors = layer.net->factors;
    const int64_t rows = steps * streams;
    const Matrix x = {rows, inputs_}, weights = {inputs_, width, true};
    keeps_ = !layer.has_gradients() && fixed_ == 0 && rows > 0 && inputs_ > 0 && width > 0;
    if (keeps_)
        kept_.reshape(x, weights, true, factors, true);
    else
        transform_.reshape(x, weights, factors);
    recur_.reshape(streams, {units, width, true}, true, factors);
    if (!layer.backward) return;
    reach_back_.reshape(streams, {width, units}, false, factors);
    input_weights_.reshape({width, rows, true}, {rows, inputs_}, factors);
    hidden_weights_.reshape({width, rows, true}, {rows, units}, factors);
    input_data_.reshape({rows, width}, {width, inputs_}, factors);
}

// Threads that share each step meet twice in it, and a step of few streams takes some
// microseconds. But each thread then reads all weights: its second cache must hold them, or the
// streams be many.
void Recurrence::split(const Layer& layer) {
    constexpr int64_t held = 512 * 1024, many_rows = 16;
    const int64_t bytes = units * width * (layer.net->narrow() ? 2 : 4);
    int64_t many = std::clamp<int64_t>(threads(), 1, std::max<int64_t>(streams, 1));
    if (bytes > held && streams / many < many_rows) many = 1;
    parts_.clear();
    for (int64_t i = 0; i < many; ++i) {
        parts_.push_back({streams * i / many, streams * (i + 1) / many, {}});
        Part& part = parts_.back();
        std::optional<Team> alone;
        if (many > 1 || layer.twin) alone.emplace(1);
        part.recur.reshape(part.end - part.begin, {units, width, true}, true, layer.net->factors);
    }
}

void Recurrence::transform_by_kept(const Layer& layer) {
    const auto plain = describe({inputs_, width, true}, dnnl::memory::data_type::f32);
    kept_.run(layer.bottoms[0]->data.read(kept_.a(), rows_of(kept_.a())),
              layer.params[0]->data.read(kept_.b(), plain), sums.write(), layer.param(1));
}

void Recurrence::transform(const Layer& layer) {
    if (parts_.empty()) recur_.pack(layer.params[hidden_param()]->data);
    for (Part& part : parts_) part.recur.pack(layer.params[hidden_param()]->data);
    if (keeps_) return transform_by_kept(layer);
    const float* bias = layer.param(1);
    const int64_t rows = steps * streams, columns = width;
    const float* fixed = nullptr;
    if (fixed_ > 0) {
        gemm(false, true, streams, width, fixed_, 1, layer.bottom(2), layer.param(static_param_), 0,
             static_sums_.data());
        fixed = static_sums_.data();
    }
    float* to = sums.write();
    const int64_t many = streams;
    parallel_each(rows, columns, [=](int64_t r) {
        std::copy_n(bias, columns, to + r * columns);
        const float* more = fixed ? fixed + r % many * columns : nullptr;
        for (int64_t i = 0; more && i < columns; ++i) to[r * columns + i] += more[i];
    });
    transform_.run(layer.bottoms[0]->data, layer.params[0]->data, to, true);
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
    float* conted = conted_.edit() + t * state_size();
    for (int64_t n = 0; n < streams; ++n)
        for (int64_t i = n * units; i < (n + 1) * units; ++i) conted[i] = scale[n] * hidden[i];
    recur_.run(conted, sums.edit() + t * streams * width);
}

void Recurrence::recur(Part& part, const float* cont, int64_t t, const float* hidden, float* conted,
                       float* to) {
    float* rows = conted + t * state_size();
    const float* scale = cont + t * streams;
    for (int64_t n = part.begin; n < part.end; ++n)
        for (int64_t i = n * units; i < (n + 1) * units; ++i) rows[i] = scale[n] * hidden[i];
    part.recur.run(rows + part.begin * units, to + (t * streams + part.begin) * width);
}

void Recurrence::turn(const Layer& layer) {
    reach_back_.pack(layer.params[hidden_param()]->data);
}

void Recurrence::reach_back(const Layer& layer, int64_t t, float* dhidden) {
    reach_back_.run(dsums.read() + t * streams * width, dhidden);
    const float* scale = cont(layer, t);
    for (int64_t n = 0; n < streams; ++n)
        for (int64_t i = n * units; i < (n + 1) * units; ++i) dhidden[i] *= scale[n];
}

void Recurrence::gradients(const Layer& layer) {
    const size_t hidden = hidden_param();
    const auto learn = [&](size_t i, TensorProduct& product, const Tensor& from) {
        if (!layer.learns[i]) return;
        bool adds = true;
        float* diff = layer.param_diff(i, adds);
        product.run(dsums, from, diff, adds);
    };
    learn(0, input_weights_, layer.bottoms[0]->data);
    learn(hidden, hidden_weights_, conted_);
    if (layer.learns[1]) add_column_sums(dsums.read(), steps * streams, width, layer.param_diff(1));
    if (layer.propagate[0])
        input_data_.run(dsums, layer.params[0]->data, layer.bottom_diff(0), false);
    if (fixed_ > 0) backward_static(layer);
    layer.clear_bottom_diffs(fixed_ > 0 ? 3 : 2);
}

void Recurrence::backward_static(const Layer& layer) {
    std::fill(static_sums_.begin(), static_sums_.end(), 0.0F);
    add_column_sums(dsums.read(), steps, streams * width, static_sums_.data());
    if (layer.learns[static_param_])
        gemm(true, false, width, fixed_, streams, 1, static_sums_.data(), layer.bottom(2), 1,
             layer.param_diff(static_param_));
    if (layer.propagate[2])
        gemm(false, false, streams, fixed_, width, 1, static_sums_.data(),
             layer.param(static_param_), 0, layer.bottom_diff(2));
}

}  // namespace sn
