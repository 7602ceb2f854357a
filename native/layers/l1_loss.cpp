// The absolute differences, summed over each item and averaged over the items (NVIDIA:
// l1_loss_layer.cpp).
#include "loss.hpp"

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
        for (size_t k = 0; k < 2; ++k) {
            if (!layer.propagate[k]) continue;
            const float scale =
                (k == 0 ? 1.0F : -1.0F) * weight(layer) / static_cast<float>(items(layer));
            float* dx = layer.bottom_diff(k);
            parallel(layer.bottoms[k]->count(), [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                    const float d = a[i] - b[i];
                    dx[i] = d > 0 ? scale : (d < 0 ? -scale : 0.0F);
                }
            });
        }
    }
};
}  // namespace

std::unique_ptr<Kernel> make_l1_loss() {
    return make<L1Loss>();
}

}  // namespace sn
