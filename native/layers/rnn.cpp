// The plain recurrent layer: h = tanh(W x + b + W_h h), o = tanh(W_o h + b_o)
// (Caffe: rnn_layer.cpp).
#include <cmath>

#include "../engine/matmul/gemm.hpp"
#include "no_gradient.hpp"
#include "recurrence.hpp"
#include "rows.hpp"

namespace sn {

namespace {
void squash(const float* x, float* y, int64_t n) {
    parallel(
        n,
        [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) y[i] = std::tanh(x[i]);
        },
        32);
}

class RNN final : public Kernel {
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

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

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
}  // namespace

std::unique_ptr<Kernel> make_rnn() {
    return make<RNN>();
}

}  // namespace sn
