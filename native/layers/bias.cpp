// y = x + bias, broadcast over the other axes (Caffe: bias_layer.cpp).
#include "../engine/plan/attention_part.hpp"
#include "operand.hpp"

namespace sn {

namespace {
class Bias final : public Kernel, public IsAttentionPart<AttentionPart::bias> {
   public:
    bool is_affine(const Layer& layer) const override { return is_by_channel(layer); }
    void fold_into(Affine& before, const Layer& layer) const override {
        before.then([](size_t) { return 1.0; }, of_param(layer, 0, 0));
    }

    void reshape(Layer& layer) override { learned_ = layer.bottoms.size() == 1; }

    void forward(Layer& layer) override {
        Tensor& x = layer.bottoms[0]->data;
        const Broadcast view = meet(layer, x);
        const float* shifts = shift_.padded(learned_ ? layer.param(0) : layer.bottom(1), view);
        map(view, x, layer.tops[0]->data, [=](float v, int64_t c) { return v + shifts[c]; });
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        Tensor& dy = layer.tops[0]->diff;
        if (learned_ ? layer.learns[0] : layer.propagate[1]) {
            const Broadcast view = meet(layer, dy);
            give(sums_.add_up(view, dy), view,
                 learned_ ? layer.param_diff(0) : layer.bottom_diff(1), learned_);
        }
        if (layer.propagate[0] && !layer.in_place()) layer.bottoms[0]->diff.copy(dy);
    }

   private:
    bool learned_ = true;
    Operand shift_;
    OperandSums sums_;
};
}  // namespace

std::unique_ptr<Kernel> make_bias() {
    return make<Bias>();
}

}  // namespace sn
