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
        map(layer.bottoms[0]->data, layer.tops[0]->data, true,
            [=](float x) { return x > 0 ? x : slope * x; });
    }
    // In place the bottom holds the result; its sign is the input's as long as the slope is
    // not negative, as Caffe has it too.
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float slope = slope_;
        map(layer.tops[0]->diff, layer.bottoms[0]->data, layer.bottoms[0]->diff, true,
            [=](float dy, float x) { return dy * (x > 0 ? 1.0F : slope); });
    }
    std::optional<float> relu_slope(const Layer& layer) const override {
        return static_cast<float>(layer.options.real("negative_slope", 0));
    }
    bool looks_back(const Layer& layer, const Blob& blob) const override {
        return &blob == layer.bottoms[0];
    }

   private:
    float slope_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_relu() {
    return make<ReLU>();
}

}  // namespace sn
