// y = x * factor + bias, broadcast over the other axes (Caffe: scale_layer.cpp).
#include "../engine/net.hpp"
#include "operand.hpp"

namespace sn {

namespace {
class Scale final : public Kernel {
   public:
    bool is_affine(const Layer& layer) const override { return is_by_channel(layer); }
    bool scales_channels(const Layer& layer) const override { return is_by_channel(layer); }
    void fold_into(Affine& before, const Layer& layer) const override {
        before.then(of_param(layer, 0, 1), of_param(layer, 1, 0));
    }

    void reshape(Layer& layer) override {
        learned_ = layer.bottoms.size() == 1;
        bias_ = layer.options.flag("bias_term");
        keeps_ =
            layer.in_place() && layer.backward && (learned_ ? layer.learns[0] : layer.propagate[1]);
        if (keeps_) kept_.reshape(layer.shape());
    }

    void forward(Layer& layer) override {
        if (keeps_) kept_.copy(layer.bottoms[0]->data);
        Tensor& y = layer.tops[0]->data;
        Tensor& x = takes_over(layer) ? y : layer.bottoms[0]->data;
        const Broadcast view = meet(layer, x);
        const float* factors = factor_.padded(factor(layer), view);
        if (bias_) {
            const float* shifts = shift_.padded(layer.param(learned_ ? 1 : 0), view);
            map(view, x, y, [=](float v, int64_t c) { return v * factors[c] + shifts[c]; });
        } else {
            map(view, x, y, [=](float v, int64_t c) { return v * factors[c]; });
        }
    }

    // In place the input is kept here, where it is needed.
    bool looks_back(const Layer& layer, const Blob& blob) const override {
        if (!learned_ && &blob == layer.bottoms[1]) return true;
        return &blob == layer.bottoms[0] && !layer.in_place() &&
               (learned_ ? layer.learns[0] : layer.propagate[1]);
    }
    void forget() override { kept_.storage().give_back(); }

    void backward(Layer& layer) override {
        Tensor& dy = layer.tops[0]->diff;
        const Broadcast view = meet(layer, dy);
        const size_t shift = learned_ ? 1 : 0;
        if (bias_ && layer.learns[shift])
            give(sums_.add_up(view, dy), view, layer.param_diff(shift), true);
        if (learned_ ? layer.learns[0] : layer.propagate[1]) {
            const Tensor& x = keeps_ ? kept_ : layer.bottoms[0]->data;
            give(sums_.add_up(view, dy, x), view,
                 learned_ ? layer.param_diff(0) : layer.bottom_diff(1), learned_);
        }
        if (!layer.propagate[0]) return;
        const float* factors = factor_.padded(factor(layer), view);
        map(view, dy, layer.bottoms[0]->diff, [=](float v, int64_t c) { return v * factors[c]; });
    }

   private:
    // Whether the top has taken the memory of a bottom that nobody reads again: writing what has
    // just been read is faster than writing elsewhere.
    static bool takes_over(const Layer& layer) {
        const Blob& from = *layer.bottoms[0];
        if (layer.has_gradients() || layer.in_place() || !layer.net->is_last_reader(layer, from) ||
            (layer.bottoms.size() > 1 && layer.bottoms[1]->data.shares(from.data)))
            return false;
        layer.tops[0]->data.copy(from.data);
        from.data.storage().give_back();
        return true;
    }

    const float* factor(const Layer& layer) const {
        return learned_ ? layer.param(0) : layer.bottom(1);
    }

    bool learned_ = true, bias_ = false, keeps_ = false;
    Tensor kept_;
    Operand factor_, shift_;
    OperandSums sums_;
};
}  // namespace

std::unique_ptr<Kernel> make_scale() {
    return make<Scale>();
}

}  // namespace sn
