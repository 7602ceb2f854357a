// One above a bound, else zero (Caffe: threshold_layer.cpp).
#include "../engine/elementwise.hpp"
#include "../engine/plan/attention_part.hpp"
#include "no_gradient.hpp"

namespace sn {

namespace {
class Threshold final : public Kernel, public IsAttentionPart<AttentionPart::bound> {
   public:
    void forward(Layer& layer) override {
        const auto bound = static_cast<float>(layer.options.real("threshold"));
        map(layer.bottoms[0]->data, layer.tops[0]->data, !(0 > bound),
            [=](float x) { return x > bound ? 1.0F : 0.0F; });
    }
    void backward(Layer& layer) override { refuse_backward(layer); }
};
}  // namespace

std::unique_ptr<Kernel> make_threshold() {
    return make<Threshold>();
}

}  // namespace sn
