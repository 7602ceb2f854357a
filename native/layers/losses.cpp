// Losses between two blobs, and the weights of records that they count.
#include <algorithm>

#include "../engine/exponential.hpp"
#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"
#include "loss.hpp"

namespace sn {

namespace {
// Pairs drawn together or pushed apart (Caffe: contrastive_loss_layer.cpp).
class ContrastiveLoss final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        num_ = layer.options.integer("num");
        channels_ = layer.options.integer("channels");
        margin_ = layer.options.real32("margin");
        legacy_ = layer.options.flag("legacy_version");
        factors_.assign(static_cast<size_t>(num_), 0);
    }

    void forward(Layer& layer) override {
        check(layer);
        const float *a = layer.bottom(0), *b = layer.bottom(1), *same = layer.bottom(2);
        const double sum = loss_sum(layer, num_, channels_ * 2, [&](int64_t i) {
            const float squared = distance2(a, b, i);
            if (alike(same[i])) return static_cast<double>(squared);
            const float short_of = margin_ - (legacy_ ? squared : std::sqrt(squared));
            const auto lack = static_cast<double>(short_of < 0 ? 0.0F : short_of);
            return legacy_ ? lack : lack * lack;
        });
        set_loss(layer, sum / items(layer) / 2);
    }

    void backward(Layer& layer) override {
        check(layer);
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        find_factors(a, b, layer.bottom(2));
        const float* factors = factors_.data();
        const int64_t channels = channels_;
        difference_gradients(layer, [=](float scale, int64_t k) {
            return scale * factors[k / channels] * (a[k] - b[k]);
        });
        layer.clear_bottom_diffs(2);
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
        parallel_each(num_, channels_ * 2, [&](int64_t i) {
            factors_[static_cast<size_t>(i)] = alike(same[i]) ? 1.0F : factor(distance2(a, b, i));
        });
    }

    int64_t num_ = 0, channels_ = 0;
    float margin_ = 1;
    bool legacy_ = false;
    std::vector<float> factors_;
};

// Half the mean squared distance (Caffe: euclidean_loss_layer.cpp).
class EuclideanLoss final : public BottomKernel {
   public:
    void forward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        const double sum = loss_sum(layer, layer.bottoms[0]->count(), 1, [=](int64_t i) {
            const auto d = static_cast<double>(a[i] - b[i]);
            return d * d;
        });
        set_loss(layer, sum / items(layer) / 2);
    }

    void backward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        difference_gradients(layer, [=](float scale, int64_t i) { return scale * (a[i] - b[i]); });
    }
};

// The margin loss, one against all (Caffe: hinge_loss_layer.cpp).
class HingeLoss final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        channels_ = layer.options.integer("channels");
        count_ = layer.options.integer("num") * channels_;
        squared_ = layer.options.text("norm") == "l2";
        labels_.reshape(layer, channels_);
    }

    void forward(Layer& layer) override {
        labels_.read(layer);
        const float* x = layer.bottom();
        const double sum = loss_sum(layer, count_, 4, [&](int64_t k) {
            const auto margin = static_cast<double>(this->margin(x, k));
            return squared_ ? margin * margin : margin;
        });
        set_loss(layer, sum / items(layer));
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "labels");
        labels_.read(layer);
        const float* x = layer.bottom();
        loss_gradient(
            layer, 0,
            [&](float scale, int64_t k) {
                const float over = margin(x, k), side = sign(k);
                return side * scale * (squared_ ? 2 * over : (over > 0 ? 1.0F : 0.0F));
            },
            4);
    }

   private:
    // The right class should lie above 1, the others below -1.
    float sign(int64_t k) const { return labels_[k / channels_] == k % channels_ ? -1.0F : 1.0F; }
    float margin(const float* x, int64_t k) const { return over(1 + sign(k) * x[k]); }
    static float over(float v) { return v < 0 ? 0.0F : v; }

    int64_t channels_ = 1, count_ = 0;
    bool squared_ = false;
    Labels labels_;
};

// Cross entropy over given probabilities (Caffe: multinomial_logistic_loss_layer.cpp).
class MultinomialLogisticLoss final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        num_ = layer.options.integer("num");
        channels_ = layer.options.integer("channels");
        labels_.reshape(layer, channels_);
    }

    void forward(Layer& layer) override {
        labels_.read(layer);
        const float* p = layer.bottom();
        const double sum = loss_sum(layer, num_, 1, [&](int64_t i) {
            return -std::log(static_cast<double>(at_least(p[i * channels_ + labels_[i]])));
        });
        set_loss(layer, sum / items(layer));
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "labels");
        labels_.read(layer);
        const float* p = layer.bottom();
        loss_gradient(layer, 0, [&](float scale, int64_t k) {
            return labels_[k / channels_] == k % channels_ ? -scale / at_least(p[k]) : 0.0F;
        });
    }

   private:
    static float at_least(float p) { return p < 1e-20F ? 1e-20F : p; }

    int64_t num_ = 0, channels_ = 0;
    Labels labels_;
};

// Independent yes-or-no losses on logits (Caffe: sigmoid_cross_entropy_loss_layer.cpp).
class SigmoidCrossEntropyLoss final : public BottomKernel {
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
        const double sum = loss_sum(layer, outer_ * inner_, 20, [&](int64_t i) {
            if (ignored(target[i])) return 0.0;
            const float v = x[i], above = v >= 0 ? 1.0F : 0.0F;
            return static_cast<double>(
                (std::log1p(fast_exp(-std::fabs(v))) - v * (target[i] - above)) *
                counted(target[i], i));
        });
        set_loss(layer, sum / normalizer(layer, outer_, inner_, valid(target)));
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "targets");
        if (!layer.propagate[0]) return;
        const float *x = layer.bottom(0), *target = layer.bottom(1);
        const double by = normalizer(layer, outer_, inner_, valid(target));
        const float scale = weight(layer) / static_cast<float>(by);
        float* dx = layer.bottom_diff(0);
        balance(target);
        parallel_each(outer_ * inner_, 10, [&](int64_t i) {
            const float d = (1.0F / (1.0F + fast_exp(-x[i])) - target[i]) * scale;
            dx[i] = ignored(target[i]) ? 0.0F : d * counted(target[i], i);
        });
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

// A blob as it is, whose gradient is multiplied by the weight of each record.
class RecordWeights final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        layer.tops[0]->data.share(layer.bottoms[0]->data);
        layer.tops[0]->weights = layer.bottoms[1];
        records_ = layer.options.integer("records");
        rows_ = layer.options.integer("before") * records_;
        after_ = layer.options.integer("after");
    }
    bool looks_back(const Layer&, Role role, size_t i) const override {
        return role == Role::bottom && i == 1;
    }
    void forward(Layer&) override {}
    void backward(Layer& layer) override {
        if (layer.propagate[1]) layer.refuse("the weights of records take no gradient");
        if (!layer.propagate[0]) return;
        const float *dy = layer.top_diff(), *weights = layer.bottom(1);
        float* dx = layer.bottom_diff();
        parallel_each(rows_, after_, [=](int64_t row) {
            const float weight = weights[row % records_];
            for (int64_t i = row * after_; i < (row + 1) * after_; ++i) dx[i] = weight * dy[i];
        });
    }

   private:
    int64_t records_ = 0, rows_ = 0, after_ = 0;
};

// The absolute differences, summed over each item and averaged over the items (NVIDIA:
// l1_loss_layer.cpp).
class L1Loss final : public Kernel {
   public:
    void forward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        const double sum = loss_sum(layer, layer.bottoms[0]->count(), 1, [=](int64_t i) {
            return static_cast<double>(std::fabs(a[i] - b[i]));
        });
        set_loss(layer, sum / items(layer));
    }

    void backward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        difference_gradients(layer, [=](float scale, int64_t i) {
            const float d = a[i] - b[i];
            return scale * (d > 0 ? 1.0F : (d < 0 ? -1.0F : 0.0F));
        });
    }
};
}  // namespace

REGISTER_LAYER(ContrastiveLoss, ContrastiveLoss);
REGISTER_LAYER(EuclideanLoss, EuclideanLoss);
REGISTER_LAYER(HingeLoss, HingeLoss);
REGISTER_LAYER(MultinomialLogisticLoss, MultinomialLogisticLoss);
REGISTER_LAYER(SigmoidCrossEntropyLoss, SigmoidCrossEntropyLoss);
REGISTER_LAYER(RecordWeights, RecordWeights);
REGISTER_LAYER(L1Loss, L1Loss);

}  // namespace sn
