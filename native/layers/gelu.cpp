// x · Φ(x), Φ being the normal distribution (Hendrycks and Gimpel, 2016), or its form with tanh.
#include "neuron.hpp"

namespace sn {

namespace {
class GELU final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        by_tanh_ = layer.options.text("approximate") == "tanh";
        activation_.reset();
    }

    std::optional<Ending> ending(const Layer& layer) const override {
        return Ending{layer.options.text("approximate") == "tanh"
                          ? dnnl::algorithm::eltwise_gelu_tanh
                          : dnnl::algorithm::eltwise_gelu_erf};
    }

    void forward(Layer& layer) override {
        activation_.run(ending(layer)->algorithm, layer.bottoms[0]->data, layer.tops[0]->data);
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const bool by_tanh = by_tanh_;
        map(
            layer.tops[0]->diff, layer.bottoms[0]->data, layer.bottoms[0]->diff, true,
            [=](float d, float x) { return d * (by_tanh ? tanh_slope(x) : erf_slope(x)); }, 64);
    }

   private:
    static float erf_slope(float x) {
        constexpr float root_half = 0.70710678F, density = 0.39894228F;
        return 0.5F * (1.0F + std::erf(x * root_half)) + x * density * std::exp(-0.5F * x * x);
    }

    static float tanh_slope(float x) {
        constexpr float outer = 0.79788456F, cubic = 0.044715F;
        const float t = std::tanh(outer * (x + cubic * x * x * x));
        return 0.5F * (1.0F + t) +
               0.5F * x * (1.0F - t * t) * outer * (1.0F + 3.0F * cubic * x * x);
    }

    bool by_tanh_ = false;
    Activation activation_;
};
}  // namespace

std::unique_ptr<Kernel> make_gelu() {
    return make<GELU>();
}

}  // namespace sn
