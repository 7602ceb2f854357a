// Items picked by their numbers (Caffe: batch_reindex_layer.cpp).
#include "../engine/layer.hpp"
#include "indices.hpp"
#include "no_gradient.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class BatchReindex final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        num_ = layer.options.integer("num");
        inner_ = layer.options.integer("inner");
        const auto items = static_cast<size_t>(layer.bottoms[1]->count());
        if (num_ != seen_ || items != picked_.size()) picked_.assign(items, -1);
        seen_ = num_;
    }

    void forward(Layer& layer) override {
        find(layer);
        const float* x = layer.bottom();
        float* y = layer.top();
        const int64_t inner = inner_;
        parallel(
            static_cast<int64_t>(picked_.size()),
            [=](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n)
                    std::copy_n(x + picked_[static_cast<size_t>(n)] * inner, inner, y + n * inner);
            },
            inner_);
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    // Threads share an item's values out, so that no two add to the same one.
    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "indices");
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        clear(dx, layer.bottoms[0]->count());
        parallel(
            inner_,
            [&](int64_t begin, int64_t end) {
                for (size_t n = 0; n < picked_.size(); ++n) {
                    if (picked_[n] < 0) continue;
                    const float* from = dy + static_cast<int64_t>(n) * inner_;
                    float* to = dx + picked_[n] * inner_;
                    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
                }
            },
            static_cast<int64_t>(picked_.size()));
    }

   private:
    void find(const Layer& layer) {
        const float* indices = layer.bottom(1);
        for (size_t n = 0; n < picked_.size(); ++n) {
            picked_[n] = index_of(indices[n], num_);
            if (picked_[n] < 0)
                layer.refuse("index " + number_text(indices[n]) + " is out of range: there are " +
                             std::to_string(num_) + " items");
        }
    }

    int64_t num_ = 0, inner_ = 0, seen_ = 0;
    std::vector<int64_t> picked_;
};
}  // namespace

std::unique_ptr<Kernel> make_batch_reindex() {
    return make<BatchReindex>();
}

}  // namespace sn
