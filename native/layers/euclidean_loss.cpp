// Half the mean squared distance (Caffe: euclidean_loss_layer.cpp).
#include "loss.hpp"

namespace sn {

namespace {
class EuclideanLoss final : public Kernel {
   public:
    void forward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        const double sum = loss_sum(layer, layer.bottoms[0]->count(), [=](int64_t i) {
            const auto d = static_cast<double>(a[i] - b[i]);
            return d * d;
        });
        set_loss(layer, sum / items(layer) / 2);
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        difference_gradients(layer, [=](int64_t i) { return a[i] - b[i]; });
    }
};
}  // namespace

std::unique_ptr<Kernel> make_euclidean_loss() {
    return make<EuclideanLoss>();
}

}  // namespace sn
