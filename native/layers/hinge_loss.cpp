// The margin loss, one against all (Caffe: hinge_loss_layer.cpp).
#include "loss.hpp"

namespace sn {

namespace {
class HingeLoss final : public Kernel {
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
        const double sum = loss_sum(
            layer, count_,
            [&](int64_t k) {
                const auto margin = static_cast<double>(this->margin(x, k));
                return squared_ ? margin * margin : margin;
            },
            4);
        set_loss(layer, sum / items(layer));
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "labels");
        if (!layer.propagate[0]) return;
        labels_.read(layer);
        const float* x = layer.bottom();
        float* dx = layer.bottom_diff(0);
        const float scale = weight(layer) / static_cast<float>(items(layer));
        parallel(
            count_,
            [&](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k) {
                    const float over = margin(x, k), side = sign(k);
                    dx[k] = side * scale * (squared_ ? 2 * over : (over > 0 ? 1.0F : 0.0F));
                }
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
}  // namespace

std::unique_ptr<Kernel> make_hinge_loss() {
    return make<HingeLoss>();
}

}  // namespace sn
