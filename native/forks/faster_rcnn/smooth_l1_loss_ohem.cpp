// Smooth L1 with the loss of each place as a second top (R-FCN: smooth_L1_loss_ohem_layer.cu).
#include "../../layers/loss.hpp"

namespace sn {

namespace {
class SmoothL1LossOHEM final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        outer_ = layer.options.integer("outer");
        channels_ = layer.options.integer("channels");
        inner_ = layer.options.integer("inner");
        losses_.resize(static_cast<size_t>(outer_ * inner_));
    }

    void forward(Layer& layer) override {
        const View at(layer);
        double sum = 0;
        for (int64_t i = 0; i < outer_ * inner_; ++i) {
            double place = 0;
            for (int64_t c = 0; c < channels_; ++c) {
                const float size = std::fabs(at.difference(index(i, c)));
                place += static_cast<double>(size < 1 ? 0.5F * size * size : size - 0.5F);
            }
            losses_[static_cast<size_t>(i)] = static_cast<float>(place);
            sum += place;
        }
        set_loss(layer, sum / normalizer(layer, outer_, inner_, outer_ * inner_));
        if (layer.tops.size() > 1) std::copy(losses_.begin(), losses_.end(), layer.top(1));
    }

    // As in R-FCN the weights act inside the loss alone: the gradient is that of w (a - b).
    void backward(Layer& layer) override {
        const View at(layer);
        const double by = normalizer(layer, outer_, inner_, outer_ * inner_);
        for (size_t k = 0; k < 2; ++k) {
            if (!layer.propagate[k]) continue;
            const float scale = (k == 0 ? 1.0F : -1.0F) * weight(layer) / static_cast<float>(by);
            float* dx = layer.bottom_diff(k);
            parallel(layer.bottoms[k]->count(), [=](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                    dx[i] = scale * std::clamp(at.difference(i), -1.0F, 1.0F);
            });
        }
        if (layer.propagate.size() > 2 && layer.propagate[2])
            std::fill_n(layer.bottom_diff(2), layer.bottoms[2]->count(), 0.0F);
    }

   private:
    struct View {
        explicit View(const Layer& layer)
            : a(layer.bottom(0)),
              b(layer.bottom(1)),
              inside(layer.bottoms.size() > 2 ? layer.bottom(2) : nullptr) {}
        float difference(int64_t i) const { return (a[i] - b[i]) * (inside ? inside[i] : 1.0F); }
        const float *a, *b, *inside;
    };

    int64_t index(int64_t place, int64_t channel) const {
        return (place / inner_ * channels_ + channel) * inner_ + place % inner_;
    }

    int64_t outer_ = 0, channels_ = 0, inner_ = 0;
    std::vector<float> losses_;
};
}  // namespace

std::unique_ptr<Kernel> make_smooth_l1_loss_ohem() {
    return make<SmoothL1LossOHEM>();
}

}  // namespace sn
