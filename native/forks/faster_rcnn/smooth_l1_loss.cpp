// Losses of Faster R-CNN and R-FCN.
#include <algorithm>
#include <numeric>

#include "../../layers/loss.hpp"
#include "../../layers/no_gradient.hpp"
#include "regions.hpp"

namespace sn {

namespace {
// What is compared, and the weights inside and outside of the loss, if there are any.
struct Differences {
    explicit Differences(const Layer& layer)
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

// Squared near zero, absolute beyond (Fast R-CNN: smooth_L1_loss_layer.cu).
class SmoothL1Loss final : public Kernel {
   public:
    void reshape(Layer& layer) override { sigma2_ = layer.options.real32("sigma2"); }

    void forward(Layer& layer) override {
        const Differences at(layer);
        const float s = sigma2_, corner = 1 / s;
        const double sum = loss_sum(layer, layer.bottoms[0]->count(), 1, [=](int64_t i) {
            const float d = at.difference(i), size = std::fabs(d);
            const float one = size < corner ? 0.5F * d * d * s : size - 0.5F * corner;
            return static_cast<double>(at.outside ? at.outside[i] * one : one);
        });
        set_loss(layer, sum / items(layer));
    }

    void backward(Layer& layer) override {
        const Differences at(layer);
        const float s = sigma2_, corner = 1 / s;
        difference_gradients(layer, [=](float scale, int64_t i) {
            const float d = at.difference(i);
            const float away = d > 0 ? 1.0F : (d < 0 ? -1.0F : d);
            return scale * ((std::fabs(d) < corner ? s * d : away) * at.weight(i));
        });
        layer.clear_bottom_diffs(2);
    }

   private:
    float sigma2_ = 1;
};

// Smooth L1 with the loss of each place as a second top (R-FCN: smooth_L1_loss_ohem_layer.cu).
class SmoothL1LossOHEM final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        outer_ = layer.options.integer("outer");
        channels_ = layer.options.integer("channels");
        inner_ = layer.options.integer("inner");
        losses_.resize(static_cast<size_t>(outer_ * inner_));
    }

    void forward(Layer& layer) override {
        const Differences at(layer);
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
        const Differences at(layer);
        const double by = normalizer(layer, outer_, inner_, outer_ * inner_);
        for (size_t k = 0; k < 2; ++k) {
            if (!layer.propagate[k]) continue;
            const float scale = (k == 0 ? 1.0F : -1.0F) * weight(layer) / static_cast<float>(by);
            float* dx = layer.bottom_diff(k);
            parallel_each(layer.bottoms[k]->count(), [=](int64_t i) {
                dx[i] = scale * std::clamp(at.difference(i), -1.0F, 1.0F);
            });
        }
        layer.clear_bottom_diffs(2);
    }

   private:
    int64_t index(int64_t place, int64_t channel) const {
        return (place / inner_ * channels_ + channel) * inner_ + place % inner_;
    }

    int64_t outer_ = 0, channels_ = 0, inner_ = 0;
    std::vector<float> losses_;
};

// Keeps the labels of the regions with the largest losses of each image
// (R-FCN: box_annotator_ohem_layer.cu).
class BoxAnnotatorOHEM final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        kept_ = layer.options.integer("roi_per_img");
        ignore_ = static_cast<float>(layer.options.integer("ignore_label"));
        const Shape& weights = layer.tops[1]->shape();
        channels_ = weights[1], area_ = weights[2] * weights[3];
        order_.resize(static_cast<size_t>(layer.bottoms[1]->count()));
    }

    void forward(Layer& layer) override {
        const float *regions = layer.bottom(0), *losses = layer.bottom(1);
        const float *labels = layer.bottom(2), *weights = layer.bottom(3);
        float *kept = layer.top(0), *inside = layer.top(1);
        std::fill_n(kept, layer.tops[0]->count(), ignore_);
        std::fill_n(inside, layer.tops[1]->count(), 0.0F);
        std::iota(order_.begin(), order_.end(), 0);
        for (const int64_t i : order_)
            if (std::isnan(losses[i]))
                layer.refuse("the loss of region " + std::to_string(i) + " is nan");
        std::stable_sort(order_.begin(), order_.end(),
                         [losses](int64_t a, int64_t b) { return losses[a] > losses[b]; });
        taken_.clear();
        for (const int64_t i : order_) {
            const int64_t n = i / area_, place = i % area_;
            const float image = regions[n * 5 * area_ + place];
            if (!(image >= 0))
                layer.refuse("region " + std::to_string(i) + " is of image " + number_text(image));
            if (taken_[static_cast<int64_t>(bounded(image))]++ >= kept_) continue;
            kept[i] = labels[i];
            for (int64_t c = 0; c < channels_; ++c) {
                const int64_t at = (n * channels_ + c) * area_ + place;
                inside[at] = weights[at];
            }
        }
    }

    void backward(Layer& layer) override { refuse_backward(layer); }

   private:
    int64_t kept_ = 1, channels_ = 0, area_ = 1;
    float ignore_ = -1;
    std::vector<int64_t> order_;
    std::map<int64_t, int64_t> taken_;  // how many of an image
};
}  // namespace

REGISTER_LAYER(SmoothL1Loss, SmoothL1Loss);
REGISTER_LAYER(SmoothL1LossOHEM, SmoothL1LossOHEM);
REGISTER_LAYER(BoxAnnotatorOHEM, BoxAnnotatorOHEM);

}  // namespace sn
