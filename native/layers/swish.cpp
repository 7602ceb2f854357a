// x · sigmoid(beta · x) (Caffe: swish_layer.cpp).
#include "../engine/activation.hpp"
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"

namespace sn {

namespace {
class Swish final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        beta_ = static_cast<float>(layer.options.real("beta"));
        sigmoid_.reshape(layer.shape());
        activation_.reset();
    }

    std::optional<Ending> ending(const Layer& layer) const override {
        return Ending{dnnl::algorithm::eltwise_swish,
                      static_cast<float>(layer.options.real("beta"))};
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::top; }

    void forward(Layer& layer) override {
        const float beta = beta_;
        const Tensor& x = layer.bottoms[0]->data;
        Tensor& y = layer.tops[0]->data;
        if (!layer.has_gradients())
            return activation_.run(dnnl::algorithm::eltwise_swish, x, y, beta);
        map(x, sigmoid_, true, [=](float v) { return beta * v; });
        activation_.run(dnnl::algorithm::eltwise_logistic, sigmoid_, sigmoid_);
        map(x, sigmoid_, y, true, [](float v, float s) { return v * s; });
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float beta = beta_;
        map(layer.tops[0]->diff, layer.tops[0]->data, sigmoid_, layer.bottoms[0]->diff, true,
            [=](float dy, float y, float s) {
                const float scaled = beta * y;
                return dy * (scaled + s * (1.0F - scaled));
            });
    }

   private:
    float beta_ = 1;
    Tensor sigmoid_;
    Activation activation_;
};
}  // namespace

std::unique_ptr<Kernel> make_swish() {
    return make<Swish>();
}

}  // namespace sn
