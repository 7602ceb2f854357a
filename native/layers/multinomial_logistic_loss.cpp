// Cross entropy over given probabilities (Caffe: multinomial_logistic_loss_layer.cpp).
#include "loss.hpp"

namespace sn {

namespace {
class MultinomialLogisticLoss final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        num_ = layer.options.integer("num");
        channels_ = layer.options.integer("channels");
        labels_.reshape(layer, channels_);
    }

    void forward(Layer& layer) override {
        labels_.read(layer);
        const float* p = layer.bottom();
        const double sum = loss_sum(layer, num_, [&](int64_t i) {
            return -std::log(static_cast<double>(at_least(p[i * channels_ + labels_[i]])));
        });
        set_loss(layer, sum / items(layer));
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "labels");
        if (!layer.propagate[0]) return;
        labels_.read(layer);
        const float* p = layer.bottom();
        float* dp = layer.bottom_diff(0);
        const float scale = -weight(layer) / static_cast<float>(items(layer));
        std::fill_n(dp, num_ * channels_, 0.0F);
        for (int64_t i = 0; i < num_; ++i) {
            const int64_t k = i * channels_ + labels_[i];
            dp[k] = scale / at_least(p[k]);
        }
    }

   private:
    static float at_least(float p) { return p < 1e-20F ? 1e-20F : p; }

    int64_t num_ = 0, channels_ = 0;
    Labels labels_;
};
}  // namespace

std::unique_ptr<Kernel> make_multinomial_logistic_loss() {
    return make<MultinomialLogisticLoss>();
}

}  // namespace sn
