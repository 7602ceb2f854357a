// x · tanh(log(1 + exp x)) (Misra, 2019).
#include "neuron.hpp"

namespace sn {

namespace {
class Mish final : public Kernel {
   public:
    void reshape(Layer&) override { activation_.reset(); }

    void forward(Layer& layer) override {
        activation_.run(dnnl::algorithm::eltwise_mish, layer.bottoms[0]->data, layer.tops[0]->data);
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        map(
            layer.tops[0]->diff, layer.bottoms[0]->data, layer.bottoms[0]->diff, true,
            [](float d, float x) {
                const float soft = std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x)));
                const float t = std::tanh(soft);
                return d * (t + x * (1.0F - t * t) / (1.0F + std::exp(-x)));
            },
            64);
    }

   private:
    Activation activation_;
};
}  // namespace

std::unique_ptr<Kernel> make_mish() {
    return make<Mish>();
}

}  // namespace sn
