// The share of right predictions, and that of each class (Caffe: accuracy_layer.cpp).
#include "loss.hpp"

namespace sn {

namespace {
class Accuracy final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        outer_ = layer.options.integer("outer");
        channels_ = layer.options.integer("channels");
        inner_ = layer.options.integer("inner");
        top_k_ = layer.options.integer("top_k");
        labels_.reshape(layer, channels_);
        right_.assign(static_cast<size_t>(outer_ * inner_), 0);
    }

    void forward(Layer& layer) override {
        labels_.read(layer);
        const float* scores = layer.bottom();
        parallel_each(outer_ * inner_, channels_, [&](int64_t i) {
            right_[static_cast<size_t>(i)] =
                labels_[i] != Labels::ignored && is_right(scores, i, labels_[i]);
        });
        int64_t hits = 0;
        for (const char right : right_) hits += right;
        layer.top()[0] = share(static_cast<float>(hits), static_cast<float>(labels_.valid()));
        if (layer.tops.size() > 1) classes(layer.top(1));
    }

    void backward(Layer& layer) override { refuse_backward(layer); }

   private:
    // Right if fewer than top_k others are as good; a tie counts as wrong, and so does NaN.
    bool is_right(const float* scores, int64_t i, int32_t label) const {
        const float* x = scores + i / inner_ * channels_ * inner_ + i % inner_;
        const float own = x[label * inner_];
        int64_t better = -1;  // the class itself is counted too
        for (int64_t c = 0; c < channels_; ++c) better += !(x[c * inner_] < own);
        return better < top_k_;
    }

    void classes(float* shares) {
        hits_.assign(static_cast<size_t>(channels_), 0);
        seen_.assign(static_cast<size_t>(channels_), 0);
        for (size_t i = 0; i < right_.size(); ++i) {
            const int32_t label = labels_[static_cast<int64_t>(i)];
            if (label == Labels::ignored) continue;
            seen_[static_cast<size_t>(label)] += 1;
            hits_[static_cast<size_t>(label)] += static_cast<float>(right_[i]);
        }
        for (size_t c = 0; c < hits_.size(); ++c) shares[c] = share(hits_[c], seen_[c]);
    }

    static float share(float part, float whole) { return whole > 0 ? part / whole : 0; }

    int64_t outer_ = 0, channels_ = 0, inner_ = 0, top_k_ = 1;
    Labels labels_;
    std::vector<char> right_;
    std::vector<float> hits_, seen_;
};
}  // namespace

REGISTER_LAYER(Accuracy, Accuracy);

}  // namespace sn
