// Squared near zero, absolute beyond (Fast R-CNN: smooth_L1_loss_layer.cu).
#include "../../layers/loss.hpp"

namespace sn {

namespace {
class SmoothL1Loss final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        sigma2_ = static_cast<float>(layer.options.real("sigma2"));
    }

    void forward(Layer& layer) override {
        const View at(layer);
        const float s = sigma2_, corner = 1 / s;
        const auto error = [=](int64_t i) {
            const float d = at.difference(i), size = std::fabs(d);
            const float one = size < corner ? 0.5F * d * d * s : size - 0.5F * corner;
            return at.outside ? at.outside[i] * one : one;
        };
        const double sum = loss_sum(layer, layer.bottoms[0]->count(),
                                    [=](int64_t i) { return static_cast<double>(error(i)); });
        set_loss(layer, sum / items(layer));
        if (layer.tops.size() > 1) show_places(layer, error);
    }

    void backward(Layer& layer) override {
        const View at(layer);
        const float s = sigma2_, corner = 1 / s;
        difference_gradients(layer, [=](int64_t i) {
            const float d = at.difference(i);
            const float away = d > 0 ? 1.0F : (d < 0 ? -1.0F : d);
            return (std::fabs(d) < corner ? s * d : away) * at.weight(i);
        });
        for (size_t k = 2; k < layer.bottoms.size(); ++k)  // the weights are constants
            if (layer.propagate[k])
                std::fill_n(layer.bottom_diff(k), layer.bottoms[k]->count(), 0.0F);
    }

   private:
    // Cascade R-CNN: the loss of each place, all channels together.
    template <typename Error>
    static void show_places(Layer& layer, Error error) {
        const int64_t channels = layer.options.integer("channels");
        const int64_t inner = layer.options.integer("inner");
        for (int64_t place = 0; place < layer.tops[1]->count(); ++place) {
            double sum = 0;
            for (int64_t c = 0; c < channels; ++c)
                sum += static_cast<double>(
                    error((place / inner * channels + c) * inner + place % inner));
            layer.top(1)[place] = static_cast<float>(sum);
        }
    }

    struct View {
        explicit View(const Layer& layer)
            : a(layer.bottom(0)),
              b(layer.bottom(1)),
              inside(layer.bottoms.size() > 2 ? layer.bottom(2) : nullptr),
              outside(layer.bottoms.size() > 3 ? layer.bottom(3) : nullptr) {}
        float difference(int64_t i) const { return (a[i] - b[i]) * (inside ? inside[i] : 1.0F); }
        float weight(int64_t i) const {
            return (inside ? inside[i] : 1.0F) * (outside ? outside[i] : 1.0F);
        }
        const float *a, *b, *inside, *outside;
    };

    float sigma2_ = 1;
};
}  // namespace

std::unique_ptr<Kernel> make_smooth_l1_loss() {
    return make<SmoothL1Loss>();
}

}  // namespace sn
