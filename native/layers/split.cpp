// One blob for several readers: the copies look at the same values, their gradients add up
// (Caffe: split_layer.cpp).
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"

namespace sn {

namespace {
class Split final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        for (Blob* top : layer.tops) top->data.share(layer.bottoms[0]->data);
    }
    void forward(Layer&) override {}
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        Tensor& sum = layer.bottoms[0]->diff;
        const auto plus = [](float a, float b) { return a + b; };
        if (layer.tops.size() == 1) {
            map(layer.tops[0]->diff, sum, true, [](float a) { return a; });
            return;
        }
        map(layer.tops[0]->diff, layer.tops[1]->diff, sum, true, plus);
        for (size_t i = 2; i < layer.tops.size(); ++i)
            map(sum, layer.tops[i]->diff, sum, true, plus);
    }
};
}  // namespace

std::unique_ptr<Kernel> make_split() {
    return make<Split>();
}

}  // namespace sn
