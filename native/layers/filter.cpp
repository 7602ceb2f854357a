// The items that a selector marks; how many is known only now, so the tops change their shape
// in the forward pass (Caffe: filter_layer.cpp).
#include "../engine/layer.hpp"
#include "no_gradient.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class Filter final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const int64_t num = layer.options.integer("num");
        if (num != num_) kept_.clear();
        num_ = num;
        kept_.reserve(static_cast<size_t>(num_));
    }

    void forward(Layer& layer) override {
        const float* selector = layer.bottom(layer.tops.size());
        kept_.clear();
        for (int64_t n = 0; n < num_; ++n)
            if (selector[n] != 0.0F) kept_.push_back(n);
        for (size_t t = 0; t < layer.tops.size(); ++t) {
            Shape shape = layer.shape(t);
            shape[0] = static_cast<int64_t>(kept_.size());
            if (shape != layer.tops[t]->shape()) layer.tops[t]->reshape(shape);
            const int64_t inner = count(shape, 1, shape.size());
            const float* x = layer.bottom(t);
            float* y = layer.top(t);
            each(inner, [=](int64_t item, int64_t n) {
                std::copy_n(x + item * inner, inner, y + n * inner);
            });
        }
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, layer.tops.size(), "selector");
        for (size_t t = 0; t < layer.tops.size(); ++t) {
            if (!layer.propagate[t]) continue;
            const int64_t inner = count(layer.shape(t), 1, layer.shape(t).size());
            const float* dy = layer.top_diff(t);
            float* dx = layer.bottom_diff(t);
            clear(dx, layer.bottoms[t]->count());
            if (layer.tops[t]->shape()[0] != static_cast<int64_t>(kept_.size())) continue;
            each(inner, [=](int64_t item, int64_t n) {
                std::copy_n(dy + n * inner, inner, dx + item * inner);
            });
        }
    }

   private:
    template <class F>
    void each(int64_t inner, F copy) const {
        parallel(
            static_cast<int64_t>(kept_.size()),
            [&](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) copy(kept_[static_cast<size_t>(n)], n);
            },
            inner);
    }

    int64_t num_ = 0;
    std::vector<int64_t> kept_;
};
}  // namespace

std::unique_ptr<Kernel> make_filter() {
    return make<Filter>();
}

}  // namespace sn
