// The sum of each value and those before it along an axis.
#include "../engine/layer.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class CumSum final : public Kernel {
   public:
    bool only_reads() const override { return true; }
    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void reshape(Layer& layer) override {
        const Shape& shape = layer.shape();
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        exclusive_ = layer.options.flag("exclusive");
        reverse_ = layer.options.flag("reverse");
        outer_ = count(shape, 0, axis);
        size_ = shape[axis];
        inner_ = count(shape, axis + 1, shape.size());
    }

    void forward(Layer& layer) override { sum(layer.bottom(), layer.top(), reverse_); }

    // Each value is in the sums that follow it.
    void backward(Layer& layer) override {
        if (layer.propagate[0]) sum(layer.top_diff(), layer.bottom_diff(), !reverse_);
    }

   private:
    void sum(const float* x, float* y, bool reverse) const {
        const int64_t size = size_, inner = inner_;
        const bool exclusive = exclusive_;
        parallel(
            outer_ * inner,
            [=](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                    const int64_t first = r / inner * size * inner + r % inner;
                    double total = 0;
                    for (int64_t i = 0; i < size; ++i) {
                        const int64_t at = first + (reverse ? size - 1 - i : i) * inner;
                        const auto value = static_cast<double>(x[at]);
                        y[at] = static_cast<float>(exclusive ? total : total + value);
                        total += value;
                    }
                }
            },
            size_);
    }

    bool exclusive_ = false, reverse_ = false;
    int64_t outer_ = 0, size_ = 0, inner_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_cum_sum() {
    return make<CumSum>();
}

}  // namespace sn
