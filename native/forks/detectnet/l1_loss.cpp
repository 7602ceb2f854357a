// The absolute differences, summed over each item and averaged over the items (NVIDIA:
// l1_loss_layer.cpp).
#include "../../layers/loss.hpp"

namespace sn {

namespace {
class L1Loss final : public Kernel {
   public:
    void forward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        const double sum = loss_sum(layer, layer.bottoms[0]->count(), [=](int64_t i) {
            return static_cast<double>(std::fabs(a[i] - b[i]));
        });
        set_loss(layer, sum / items(layer));
    }

    void backward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        difference_gradients(layer, [=](int64_t i) {
            const float d = a[i] - b[i];
            return d > 0 ? 1.0F : (d < 0 ? -1.0F : 0.0F);
        });
    }
};
}  // namespace

std::unique_ptr<Kernel> make_l1_loss() {
    return make<L1Loss>();
}

}  // namespace sn
