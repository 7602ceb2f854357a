// Plain and gated recurrent networks.
#include <cmath>

#include "../engine/layer.hpp"
#include "../engine/matmul/gemm.hpp"
#include "../engine/matmul/tensor_product.hpp"
#include "lstm_cell.hpp"
#include "no_gradient.hpp"
#include "recurrence.hpp"
#include "rows.hpp"

namespace sn {

namespace {
// The plain recurrent layer: h = tanh(W x + b + W_h h), o = tanh(W_o h + b_o)
// (Caffe: rnn_layer.cpp).
void squash(const float* x, float* y, int64_t n) {
    parallel_each(n, 32, [=](int64_t i) { y[i] = std::tanh(x[i]); });
}

class RNN final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        walk_.reshape(layer, 1);
        outputs_.resize(static_cast<size_t>(walk_.sums.count()));
        dhidden_.resize(layer.backward ? outputs_.size() : 0);
        reached_.resize(static_cast<size_t>(walk_.state_size()));
    }

    // Every step's sums become its hidden state.
    void forward(Layer& layer) override {
        const int64_t state = walk_.state_size(), units = walk_.units;
        const int64_t rows = walk_.steps * walk_.streams;
        walk_.transform(layer);
        float* hidden = walk_.sums.edit();
        const float* before = walk_.first(layer, 0);
        for (int64_t t = 0; t < walk_.steps; ++t) {
            walk_.recur(layer, t, before);
            squash(hidden + t * state, hidden + t * state, state);
            before = hidden + t * state;
        }
        walk_.last(layer, 0, before);
        const size_t param = walk_.next_param();
        const float* bias = layer.param(param + 1);
        float* out = outputs_.data();
        for (int64_t r = 0; r < rows; ++r) std::copy_n(bias, units, out + r * units);
        gemm(false, true, rows, units, units, 1, hidden, layer.param(param), 1, out);
        squash(out, out, rows * units);
        std::copy_n(out, rows * units, layer.top());
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "sequence indicators");
        backward_outputs(layer);
        const int64_t state = walk_.state_size();
        float *reached = reached_.data(), *dsums = walk_.dsums.write();
        std::fill(reached_.begin(), reached_.end(), 0.0F);
        walk_.turn(layer);
        for (int64_t t = walk_.steps; t-- > 0;) {
            const float *h = walk_.sums.read() + t * state, *d = dhidden_.data() + t * state;
            float* sums = dsums + t * state;
            for (int64_t i = 0; i < state; ++i) sums[i] = (d[i] + reached[i]) * (1 - h[i] * h[i]);
            if (t > 0) walk_.reach_back(layer, t, reached);
        }
        walk_.gradients(layer);
    }

   private:
    // Through o = tanh(W_o h + b_o), all steps at once.
    void backward_outputs(Layer& layer) {
        const int64_t units = walk_.units, rows = walk_.steps * walk_.streams;
        const size_t param = walk_.next_param();
        const float *dy = layer.top_diff(), *o = outputs_.data();
        float* d = walk_.dsums.write();  // free until the walk back
        for (int64_t i = 0; i < rows * units; ++i) d[i] = dy[i] * (1 - o[i] * o[i]);
        if (layer.learns[param])
            gemm(true, false, units, units, rows, 1, d, walk_.sums.read(), 1,
                 layer.param_diff(param));
        if (layer.learns[param + 1]) add_column_sums(d, rows, units, layer.param_diff(param + 1));
        gemm(false, false, rows, units, units, 1, d, layer.param(param), 0, dhidden_.data());
    }

    Recurrence walk_;
    std::vector<float> outputs_, dhidden_, reached_;
};

// Gated recurrent units over a sequence (Cho et al., 2014); the reset gate works before or after
// the product with the hidden state's weights.
// The update and the reset gate.
SN_KERNEL void gru_gates_run(int64_t count, int64_t units, const float* more, float* gates) {
    SN_EACH(i, count) {
        gates[i] = sigmoid(gates[i] + more[i]);
        gates[units + i] = sigmoid(gates[units + i] + more[units + i]);
    }
}

template <bool resets>
SN_KERNEL void gru_hidden_run(int64_t count, int64_t units, const float* before, const float* inner,
                              float* gates, float* to) {
    SN_EACH(i, count) {
        const float reset = resets ? gates[units + i] : 1.0F;
        const float candidate = gate_tanh(gates[2 * units + i] + reset * inner[i]);
        gates[2 * units + i] = candidate;
        to[i] = (1.0F - gates[i]) * candidate + gates[i] * before[i];
    }
}

// Gates in the order update, reset, candidate: h' = (1 - z) n + z h.
class GRU final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        steps_ = options.integer("steps"), streams_ = options.integer("streams");
        units_ = options.integer("num_output"), inputs_ = options.integer("inputs");
        after_ = options.flag("reset_after");
        exposed_ = options.flag("expose_hidden");
        const int64_t rows = steps_ * streams_, state = streams_ * units_;
        const auto size = [](int64_t n) { return static_cast<size_t>(n); };
        gates_.resize(size(rows * 3 * units_));
        before_.resize(size(rows * units_)), inner_.resize(size(rows * units_));
        step_.resize(size(streams_ * 3 * units_));
        if (carried_.size() < size(state)) carried_.assign(size(state), 0.0F);
        dgates_.resize(size(layer.backward ? rows * 3 * units_ : 0));
        dinner_.resize(size(layer.backward ? rows * units_ : 0));
        dhidden_.resize(size(state)), dbefore_.resize(size(state));
        recur_.reshape(streams_, {units_, (after_ ? 3 : 2) * units_, true}, false,
                       dnnl::memory::data_type::f32);
    }

    void forward(Layer& layer) override {
        const int64_t rows = steps_ * streams_, width = 3 * units_, state = streams_ * units_;
        const float* bias = layer.param(1);
        for (int64_t r = 0; r < rows; ++r) std::copy_n(bias, width, gates_.data() + r * width);
        gemm(false, true, rows, width, inputs_, 1, layer.bottom(), layer.param(0), 1,
             gates_.data());
        recur_.pack(layer.params[2]->data);
        const float* hidden = exposed_ ? layer.bottom(2) : carried_.data();
        float* y = layer.top();
        for (int64_t t = 0; t < steps_; ++t) {
            step(layer, t, hidden, y + t * state);
            hidden = y + t * state;
        }
        if (steps_ > 0) std::copy_n(hidden, state, exposed_ ? layer.top(1) : carried_.data());
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "sequence indicators");
        const int64_t state = streams_ * units_, rows = steps_ * streams_, width = 3 * units_;
        const float* dy = layer.top_diff();
        std::fill(dhidden_.begin(), dhidden_.end(), 0.0F);
        for (int64_t t = steps_; t-- > 0;) {
            for (int64_t i = 0; i < state; ++i)
                dhidden_[static_cast<size_t>(i)] += dy[t * state + i];
            step_back(layer, t);
        }
        if (layer.learns[0])
            gemm(true, false, width, inputs_, rows, 1, dgates_.data(), layer.bottom(), 1,
                 layer.param_diff(0));
        if (layer.learns[1]) add_column_sums(dgates_.data(), rows, width, layer.param_diff(1));
        if (layer.learns[2]) learn_recurrent(layer.param_diff(2));
        if (layer.learns[3]) add_column_sums(dinner_.data(), rows, units_, layer.param_diff(3));
        if (layer.propagate[0])
            gemm(false, false, rows, inputs_, width, 1, dgates_.data(), layer.param(0), 0,
                 layer.bottom_diff(0));
        layer.clear_bottom_diffs(2);
    }

   private:
    float* gates(int64_t t) { return gates_.data() + t * streams_ * 3 * units_; }

    // What the candidate's weights are multiplied by, and their result, lie in before_ and inner_:
    // the hidden state, or where the gate works before, the gated one.
    void step(const Layer& layer, int64_t t, const float* hidden, float* to) {
        const int64_t h = units_, state = streams_ * h;
        const float *cont = layer.bottom(1) + t * streams_, *u = layer.param(2);
        const float* c = layer.param(3);
        float *before = before_.data() + t * state, *inner = inner_.data() + t * state;
        for (int64_t n = 0; n < streams_; ++n)
            for (int64_t i = n * h; i < (n + 1) * h; ++i) before[i] = cont[n] * hidden[i];
        recur_.run(before, step_.data());
        const int64_t wide = after_ ? 3 * h : 2 * h;
        const float* more = step_.data();
        float *all = gates(t), *gated = dbefore_.data();
        const bool after = after_;
        each_run(streams_, h, [=](int64_t n, int64_t from, int64_t i, int64_t count) {
            float* g = all + n * 3 * h + from;
            gru_gates_run(count, h, more + n * wide + from, g);
            if (!after) {
                for (int64_t k = 0; k < count; ++k) gated[i + k] = before[i + k] * g[h + k];
                std::copy_n(c + from, count, inner + i);
                return;
            }
            const float* product = more + n * wide + 2 * h + from;
            for (int64_t k = 0; k < count; ++k) inner[i + k] = product[k] + c[from + k];
            gru_hidden_run<true>(count, h, before + i, inner + i, g, to + i);
        });
        if (after_) return;
        gemm(false, true, streams_, h, h, 1, gated, u + 2 * h * h, 1, inner);
        each_run(streams_, h, [=](int64_t n, int64_t from, int64_t i, int64_t count) {
            gru_hidden_run<false>(count, h, before + i, inner + i, all + n * 3 * h + from, to + i);
        });
    }

    void step_back(const Layer& layer, int64_t t) {
        const int64_t h = units_, state = streams_ * h;
        const float *u = layer.param(2), *cont = layer.bottom(1) + t * streams_;
        const float *before = before_.data() + t * state, *inner = inner_.data() + t * state;
        float *dg = dgates_.data() + t * 3 * state, *di = dinner_.data() + t * state;
        for (int64_t i = 0; i < state; ++i) {
            const float *g = gates(t) + i / h * 3 * h + i % h, z = g[0], n = g[2 * h];
            float* d = dg + i / h * 3 * h + i % h;
            const float dh = dhidden_[static_cast<size_t>(i)];
            d[0] = dh * (before[i] - n) * z * (1.0F - z);
            d[2 * h] = dh * (1.0F - z) * (1.0F - n * n);
            di[i] = after_ ? d[2 * h] * g[h] : d[2 * h];
            if (after_) d[h] = d[2 * h] * inner[i] * g[h] * (1.0F - g[h]);
            dbefore_[static_cast<size_t>(i)] = dh * z;
        }
        if (after_) {
            gemm(false, false, streams_, h, h, 1, di, u + 2 * h * h, 1, dbefore_.data());
        } else {
            // Through the product with the gated state.
            gemm(false, false, streams_, h, h, 1, di, u + 2 * h * h, 0, step_.data());
            for (int64_t i = 0; i < state; ++i) {
                const float r = gates(t)[i / h * 3 * h + h + i % h];
                const float through = step_[static_cast<size_t>(i)];
                dg[i / h * 3 * h + h + i % h] = through * before[i] * r * (1.0F - r);
                dbefore_[static_cast<size_t>(i)] += through * r;
            }
        }
        for (int64_t n = 0; n < streams_; ++n)
            std::copy_n(dg + n * 3 * h, 2 * h, step_.data() + n * 2 * h);
        gemm(false, false, streams_, h, 2 * h, 1, step_.data(), u, 1, dbefore_.data());
        for (int64_t i = 0; i < state; ++i)
            dhidden_[static_cast<size_t>(i)] = dbefore_[static_cast<size_t>(i)] * cont[i / h];
    }

    // The gates' weights from their gradients and the state before; the candidate's from its own.
    void learn_recurrent(float* diff) {
        const int64_t h = units_, state = streams_ * h;
        for (int64_t t = 0; t < steps_; ++t) {
            const float* dg = dgates_.data() + t * 3 * state;
            for (int64_t n = 0; n < streams_; ++n)
                std::copy_n(dg + n * 3 * h, 2 * h, step_.data() + n * 2 * h);
            const float* before = before_.data() + t * state;
            gemm(true, false, 2 * h, h, streams_, 1, step_.data(), before, 1, diff);
            for (int64_t i = 0; i < state; ++i) {
                const float r = after_ ? 1.0F : gates(t)[i / h * 3 * h + h + i % h];
                dbefore_[static_cast<size_t>(i)] = before[i] * r;
            }
            gemm(true, false, h, h, streams_, 1, dinner_.data() + t * state, dbefore_.data(), 1,
                 diff + 2 * h * h);
        }
    }

    int64_t steps_ = 0, streams_ = 0, units_ = 0, inputs_ = 0;
    bool after_ = true, exposed_ = false;
    // Of all gates with the hidden state; of the first two where the gate works before.
    StepProduct recur_;
    std::vector<float> gates_, before_, inner_, step_, carried_, dgates_, dinner_, dhidden_,
        dbefore_;
};
}  // namespace

REGISTER_LAYER(RNN, RNN);
REGISTER_LAYER(GRU, GRU);

}  // namespace sn
