// The values at given places of an axis.
#include "../engine/layer.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class Gather final : public Kernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        const Shape& shape = layer.shape();
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        index_ = layer.options.integers("index");
        outer_ = count(shape, 0, axis);
        size_ = shape[axis];
        inner_ = count(shape, axis + 1, shape.size());
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        const int64_t *index = index_.data(), size = size_, inner = inner_;
        const auto many = static_cast<int64_t>(index_.size());
        parallel(
            outer_ * many,
            [=](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r)
                    std::copy_n(x + (r / many * size + index[r % many]) * inner, inner,
                                y + r * inner);
            },
            inner_);
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        const int64_t *index = index_.data(), size = size_, inner = inner_;
        const auto many = static_cast<int64_t>(index_.size());
        parallel(
            outer_,
            [=](int64_t begin, int64_t end) {
                std::fill(dx + begin * size * inner, dx + end * size * inner, 0.0F);
                for (int64_t r = begin * many; r < end * many; ++r) {
                    float* to = dx + (r / many * size + index[r % many]) * inner;
                    for (int64_t i = 0; i < inner; ++i) to[i] += dy[r * inner + i];
                }
            },
            inner_ * many);
    }

   private:
    std::vector<int64_t> index_;
    int64_t outer_ = 0, size_ = 0, inner_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_gather() {
    return make<Gather>();
}

}  // namespace sn
