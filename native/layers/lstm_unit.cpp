// One step of an LSTM as a layer (Caffe: lstm_unit_layer.cpp).
#include "../engine/layer.hpp"
#include "lstm_cell.hpp"
#include "no_gradient.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class LSTMUnit final : public Kernel {
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

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

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

std::unique_ptr<Kernel> make_lstm_unit() {
    return make<LSTMUnit>();
}

}  // namespace sn
