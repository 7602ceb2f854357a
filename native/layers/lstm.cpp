// LSTM over a sequence, and one step of it.
#include "../engine/layer.hpp"
#include "lstm_cell.hpp"
#include "no_gradient.hpp"
#include "recurrence.hpp"
#include "rows.hpp"

namespace sn {

namespace {
// Long short-term memory over a sequence (Caffe: lstm_layer.cpp).
class LSTM final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        walk_.reshape(layer, 4);
        walk_.split(layer);
        const auto state = static_cast<size_t>(walk_.state_size());
        const auto steps = static_cast<size_t>(walk_.steps);
        cells_.resize((steps + 1) * state);
        squashed_.resize(steps * state);
        hidden_.resize(state), dcell_.resize(state);
    }

    bool walks_alone(const Layer& layer) const override {
        const Options& options = layer.options;
        return !layer.has_gradients() && options.integer("streams") == 1 &&
               !options.flag("expose_hidden");
    }

    void forward(Layer& layer) override {
        begin(layer);
        if (layer.waits) return;
        LSTM* const twin = layer.twin && layer.twin->waits
                               ? static_cast<LSTM*>(layer.twin->kernel.get())
                               : nullptr;
        if (twin)
            in_threads(2, [&](int i) { (i == 0 ? *this : *twin).walk(); });
        else
            walk();
        if (twin) twin->end(*layer.twin);
        end(layer);
    }

    std::string method(const Layer& layer, Part part) const override {
        if (part != Part::forward || !layer.twin) return {};
        return "at the same time as '" + layer.twin->name + "'";
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "sequence indicators");
        const int64_t state = walk_.state_size();
        const float *dy = layer.top_diff(), *gates = walk_.sums.read();
        float* dsums = walk_.dsums.write();
        std::fill(hidden_.begin(), hidden_.end(), 0.0F);
        std::fill(dcell_.begin(), dcell_.end(), 0.0F);
        walk_.turn(layer);
        for (int64_t t = walk_.steps; t-- > 0;) {
            for (int64_t i = 0; i < state; ++i)
                hidden_[static_cast<size_t>(i)] += dy[t * state + i];
            lstm_backward(walk_.streams, walk_.units, cells(t), gates + t * 4 * state,
                          squashed_.data() + t * state, dcell_.data(), hidden_.data(),
                          dcell_.data(), dsums + t * 4 * state);
            if (t > 0) walk_.reach_back(layer, t, hidden_.data());
        }
        walk_.gradients(layer);
    }

   private:
    void begin(const Layer& layer) {
        const int64_t state = walk_.state_size();
        walk_.transform(layer);
        std::copy_n(walk_.first(layer, 0), state, hidden_.data());
        std::copy_n(walk_.first(layer, 1), state, cells_.data());
        cont_ = walk_.cont(layer, 0), y_ = layer.top();
        sums_ = walk_.sums.edit(), conted_ = walk_.conted();
    }

    void walk() {
        const int64_t state = walk_.state_size(), units = walk_.units;
        walk_.walk([&](Recurrence::Part& part) {
            const int64_t many = part.end - part.begin, first = part.begin * units;
            float* hidden = hidden_.data() + first;
            for (int64_t t = 0; t < walk_.steps; ++t) {
                walk_.recur(part, cont_, t, hidden_.data(), conted_, sums_);
                float* gates = sums_ + 4 * (t * state + first);
                lstm_forward(many, units, cont_ + t * walk_.streams + part.begin, cells(t) + first,
                             gates, gates, cells(t + 1) + first,
                             squashed_.data() + t * state + first, hidden);
                std::copy_n(hidden, many * units, y_ + t * state + first);
            }
        });
    }

    void end(const Layer& layer) {
        walk_.last(layer, 0, hidden_.data());
        walk_.last(layer, 1, cells(walk_.steps));
    }

    float* cells(int64_t t) { return cells_.data() + t * walk_.state_size(); }

    Recurrence walk_;
    // Of this pass.
    const float* cont_ = nullptr;
    float *y_ = nullptr, *sums_ = nullptr, *conted_ = nullptr;
    // Cells from before the first step on, and their tanh; the hidden state, and in backward the
    // gradients of both.
    std::vector<float> cells_, squashed_, hidden_, dcell_;
};

// One step of an LSTM as a layer (Caffe: lstm_unit_layer.cpp).
class LSTMUnit final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        streams_ = layer.options.integer("streams");
        units_ = layer.options.integer("units");
        const auto values = static_cast<size_t>(streams_ * units_);
        gates_.resize(4 * values), squashed_.resize(values);
        spare_.resize(layer.backward ? 5 * values : 0);
    }

    void forward(Layer& layer) override {
        lstm_forward(streams_, units_, layer.bottom(2), layer.bottom(0), layer.bottom(1),
                     gates_.data(), layer.top(0), squashed_.data(), layer.top(1));
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 2, "sequence indicators");
        float* cell = layer.propagate[0] ? layer.bottom_diff(0) : spare_.data();
        float* sums = layer.propagate[1] ? layer.bottom_diff(1) : spare_.data() + streams_ * units_;
        lstm_backward(streams_, units_, layer.bottom(0), gates_.data(), squashed_.data(),
                      layer.top_diff(0), layer.top_diff(1), cell, sums);
    }

   private:
    int64_t streams_ = 0, units_ = 0;
    // The gates and tanh of the cell, for backward; and room for gradients nobody wants.
    std::vector<float> gates_, squashed_, spare_;
};
}  // namespace

REGISTER_LAYER(LSTM, LSTM);
REGISTER_LAYER(LSTMUnit, LSTMUnit);

}  // namespace sn
