// Pairs drawn together or pushed apart (Caffe: contrastive_loss_layer.cpp).
#include <algorithm>

#include "loss.hpp"

namespace sn {

namespace {
class ContrastiveLoss final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        num_ = layer.options.integer("num");
        channels_ = layer.options.integer("channels");
        margin_ = static_cast<float>(layer.options.real("margin"));
        legacy_ = layer.options.flag("legacy_version");
        factors_.assign(static_cast<size_t>(num_), 0);
    }

    void forward(Layer& layer) override {
        check(layer);
        const float *a = layer.bottom(0), *b = layer.bottom(1), *same = layer.bottom(2);
        const double sum = loss_sum(
            layer, num_,
            [&](int64_t i) {
                const float squared = distance2(a, b, i);
                if (alike(same[i])) return static_cast<double>(squared);
                const float short_of = margin_ - (legacy_ ? squared : std::sqrt(squared));
                const auto lack = static_cast<double>(short_of < 0 ? 0.0F : short_of);
                return legacy_ ? lack : lack * lack;
            },
            channels_ * 2);
        set_loss(layer, sum / items(layer) / 2);
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        check(layer);
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        find_factors(a, b, layer.bottom(2));
        for (size_t k = 0; k < 2; ++k) {
            if (!layer.propagate[k]) continue;
            const float alpha =
                (k == 0 ? 1.0F : -1.0F) * weight(layer) / static_cast<float>(items(layer));
            float* dx = layer.bottom_diff(k);
            parallel(
                num_,
                [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                        const float factor = alpha * factors_[static_cast<size_t>(i)];
                        for (int64_t c = i * channels_; c < (i + 1) * channels_; ++c)
                            dx[c] = factor * (a[c] - b[c]);
                    }
                },
                channels_);
        }
        if (layer.propagate[2]) std::fill_n(layer.bottom_diff(2), layer.bottoms[2]->count(), 0.0F);
    }

   private:
    void check(const Layer& layer) const {
        const float* same = layer.bottom(2);
        for (int64_t i = 0; i < num_; ++i)
            if (!std::isfinite(same[i]))
                layer.refuse("label " + std::to_string(same[i]) + " is neither 0 nor 1");
    }

    // Labels are cut to whole numbers; all but zero say that the pair is alike.
    static bool alike(float same) { return std::trunc(same) != 0; }

    float distance2(const float* a, const float* b, int64_t i) const {
        double sum = 0;
        for (int64_t c = i * channels_; c < (i + 1) * channels_; ++c) {
            const float d = a[c] - b[c];
            sum += static_cast<double>(d * d);
        }
        return static_cast<float>(sum);
    }

    // What the difference of a pair is multiplied by.
    float factor(float squared) const {
        if (legacy_) return margin_ - squared > 0 ? -1.0F : 0.0F;
        const float distance = std::sqrt(squared), lack = margin_ - distance;
        return lack > 0 ? -lack / (distance + 1e-4F) : 0.0F;
    }

    void find_factors(const float* a, const float* b, const float* same) {
        parallel(
            num_,
            [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i)
                    factors_[static_cast<size_t>(i)] =
                        alike(same[i]) ? 1.0F : factor(distance2(a, b, i));
            },
            channels_ * 2);
    }

    int64_t num_ = 0, channels_ = 0;
    float margin_ = 1;
    bool legacy_ = false;
    std::vector<float> factors_;
};
}  // namespace

std::unique_ptr<Kernel> make_contrastive_loss() {
    return make<ContrastiveLoss>();
}

}  // namespace sn
