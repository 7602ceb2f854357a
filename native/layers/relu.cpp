// max(x, 0), or with a slope below zero (Caffe: relu_layer.cpp).
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"

namespace sn {

namespace {
class ReLU final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        slope_ = static_cast<float>(layer.options.real("negative_slope"));
    }
    void forward(Layer& layer) override {
        const float slope = slope_;
        const Tensor& x = layer.bottoms[0]->data;
        if (slope == 0)  // NaN stays
            return map(x, layer.tops[0]->data, true, [](float v) { return v <= 0 ? 0.0F : v; });
        map(x, layer.tops[0]->data, true, [=](float v) { return v > 0 ? v : slope * v; });
    }
    // Unless the slope is negative, the sign of the result is the input's.
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float slope = slope_;
        map(layer.tops[0]->diff, layer.bottoms[0]->data, layer.bottoms[0]->diff, true,
            [=](float dy, float x) { return dy * (x > 0 ? 1.0F : slope); });
    }
    std::optional<float> relu_slope(const Layer& layer) const override {
        return static_cast<float>(layer.options.real("negative_slope", 0));
    }
    bool looks_back(const Layer& layer, Role role, size_t) const override {
        return role == (layer.in_place() && slope_ >= 0 ? Role::top : Role::bottom);
    }
    bool leaves_signs(const Layer&) const override { return slope_ >= 0; }

   private:
    float slope_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_relu() {
    return make<ReLU>();
}

}  // namespace sn
