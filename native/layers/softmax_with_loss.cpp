// Softmax and cross entropy in one (Caffe: softmax_loss_layer.cpp).
#include <cfloat>

#include "loss.hpp"
#include "probabilities.hpp"

namespace sn {

namespace {
class SoftmaxWithLoss final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        p_.reshape(layer);
        labels_.reshape(layer, p_.channels);
        weights_.clear();
        if (layer.options.has("class_weights"))
            for (const double one : layer.options.reals("class_weights"))
                weights_.push_back(static_cast<float>(one));
    }

    void forward(Layer& layer) override {
        labels_.read(layer);
        p_.compute(layer.bottom());
        const double sum = loss_sum(
            layer, p_.outer * p_.inner,
            [&](int64_t i) {
                if (labels_[i] == Labels::ignored) return 0.0;
                const float p = p_.values()[p_.at(i / p_.inner, labels_[i], i % p_.inner)];
                return -static_cast<double>(std::log(p < FLT_MIN ? FLT_MIN : p) *
                                            weight_of(labels_[i]));
            },
            20);
        if (layer.tops.size() > 2) show_losses(layer.top(2));
        set_loss(layer, sum / normalizer(layer, p_.outer, p_.inner, labels_.valid()));
        if (layer.tops.size() > 1) std::copy(p_.values(), p_.values() + p_.count(), layer.top(1));
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "labels");
        if (!layer.propagate[0]) return;
        labels_.read(layer);
        const double by = normalizer(layer, p_.outer, p_.inner, labels_.valid());
        const float scale = weight(layer) / static_cast<float>(by);
        const float* p = p_.values();
        float* dx = layer.bottom_diff(0);
        if (p_.inner == 1 && weights_.empty()) return backward_rows(p, scale, dx);
        parallel(
            p_.outer * p_.channels,
            [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                    const int64_t c = row % p_.channels, first = row / p_.channels * p_.inner;
                    for (int64_t i = 0; i < p_.inner; ++i) {
                        const int32_t label = labels_[first + i];
                        const int64_t k = row * p_.inner + i;
                        const float hit = label == c ? 1.0F : 0.0F;
                        dx[k] = label == Labels::ignored ? 0.0F
                                                         : (p[k] - hit) * scale * weight_of(label);
                    }
                }
            },
            p_.inner * 2);
    }

   private:
    // R-FCN: the loss of each place.
    void show_losses(float* losses) const {
        for (int64_t i = 0; i < p_.outer * p_.inner; ++i) {
            losses[i] = 0;
            if (labels_[i] == Labels::ignored) continue;
            const float p = p_.values()[p_.at(i / p_.inner, labels_[i], i % p_.inner)];
            losses[i] = -std::log(p < FLT_MIN ? FLT_MIN : p) * weight_of(labels_[i]);
        }
    }

    // SegNet: what a class counts.
    float weight_of(int32_t label) const {
        return weights_.empty() ? 1.0F : weights_[static_cast<size_t>(label)];
    }

    // The same where the classes of a place lie side by side.
    void backward_rows(const float* p, float scale, float* dx) const {
        const int64_t width = p_.channels;
        parallel(
            p_.outer,
            [=](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                    const int32_t label = labels_[row];
                    const float* from = p + row * width;
                    float* to = dx + row * width;
                    if (label == Labels::ignored) {
                        std::fill_n(to, width, 0.0F);
                        continue;
                    }
                    for (int64_t c = 0; c < width; ++c) to[c] = from[c] * scale;
                    to[label] = (from[label] - 1) * scale;
                }
            },
            p_.channels * 2);
    }

    Probabilities p_;
    Labels labels_;
    std::vector<float> weights_;
};
}  // namespace

std::unique_ptr<Kernel> make_softmax_with_loss() {
    return make<SoftmaxWithLoss>();
}

}  // namespace sn
