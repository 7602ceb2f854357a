// Independent yes-or-no losses on logits (Caffe: sigmoid_cross_entropy_loss_layer.cpp).
#include "../engine/exponential.hpp"
#include "loss.hpp"

namespace sn {

namespace {
class SigmoidCrossEntropyLoss final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        outer_ = layer.options.integer("outer");
        inner_ = layer.options.integer("inner");
        balanced_ = layer.options.flag("class_balanced", false);
        shares_.assign(balanced_ ? static_cast<size_t>(outer_) : 0, 0.0F);
        ignores_ = layer.options.has("ignore_label");
        ignore_ = ignores_ ? static_cast<float>(layer.options.integer("ignore_label")) : 0;
    }

    void forward(Layer& layer) override {
        const float *x = layer.bottom(0), *target = layer.bottom(1);
        balance(target);
        const double sum = loss_sum(
            layer, outer_ * inner_,
            [&](int64_t i) {
                if (ignored(target[i])) return 0.0;
                const float v = x[i], above = v >= 0 ? 1.0F : 0.0F;
                return static_cast<double>(
                    (std::log1p(fast_exp(-std::fabs(v))) - v * (target[i] - above)) *
                    counted(target[i], i));
            },
            20);
        set_loss(layer, sum / normalizer(layer, outer_, inner_, valid(target)));
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "targets");
        if (!layer.propagate[0]) return;
        const float *x = layer.bottom(0), *target = layer.bottom(1);
        const double by = normalizer(layer, outer_, inner_, valid(target));
        const float scale = weight(layer) / static_cast<float>(by);
        float* dx = layer.bottom_diff(0);
        balance(target);
        parallel(
            outer_ * inner_,
            [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                    const float d = (1.0F / (1.0F + fast_exp(-x[i])) - target[i]) * scale;
                    dx[i] = ignored(target[i]) ? 0.0F : d * counted(target[i], i);
                }
            },
            10);
    }

   private:
    // HED: the share of zeros among the zeros and ones of each item.
    void balance(const float* target) {
        for (size_t n = 0; n < shares_.size(); ++n) {
            const float* own = target + static_cast<int64_t>(n) * inner_;
            const auto zeros = std::count(own, own + inner_, 0.0F);
            const auto ones = std::count(own, own + inner_, 1.0F);
            shares_[n] =
                static_cast<float>(zeros) / static_cast<float>(std::max<int64_t>(1, zeros + ones));
        }
    }

    // What the loss of a target counts.
    float counted(float target, int64_t i) const {
        if (!balanced_) return 1.0F;
        const float zeros = shares_[static_cast<size_t>(i / inner_)];
        return target == 1.0F ? zeros : (target == 0.0F ? 1.0F - zeros : 0.0F);
    }

    // Targets are cut to whole numbers before they are compared, as in Caffe.
    bool ignored(float target) const { return ignores_ && std::trunc(target) == ignore_; }

    int64_t valid(const float* target) const {
        int64_t number = 0;
        for (int64_t i = 0; i < outer_ * inner_; ++i) number += !ignored(target[i]);
        return number;
    }

    int64_t outer_ = 0, inner_ = 0;
    bool ignores_ = false, balanced_ = false;
    std::vector<float> shares_;
    float ignore_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_sigmoid_cross_entropy_loss() {
    return make<SigmoidCrossEntropyLoss>();
}

}  // namespace sn
