// Values under sizes that are read from other blobs: spread, cut off or reshaped.
#include "../engine/layer.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class SizedLike final : public Kernel {
   public:
    bool only_reads() const override { return true; }
    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void reshape(Layer& layer) override {
        top_ = layer.tops[0]->shape();
        const int64_t total = count(top_);
        if (layer.options.flag("reshape")) top_ = {total};
        const Shape bottom = layer.options.flag("reshape") ? Shape{total} : layer.shape();
        steps_.assign(top_.size(), 0);
        int64_t step = 1;
        for (size_t i = 0; i < bottom.size(); ++i) {
            const size_t own = bottom.size() - 1 - i;
            if (bottom[own] != 1) steps_[top_.size() - 1 - i] = step;
            step *= bottom[own];
        }
        width_ = top_.empty() ? 1 : top_.back();
        rows_ = width_ == 0 ? 0 : total / width_;
        inner_ = top_.empty() ? 0 : steps_.back();
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        parallel(
            rows_,
            [=](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                    const float* from = x + first(r);
                    if (inner_ != 0)
                        std::copy_n(from, width_, y + r * width_);
                    else
                        std::fill_n(y + r * width_, width_, *from);
                }
            },
            width_);
    }

    void backward(Layer& layer) override {
        for (size_t i = 1; i < layer.bottoms.size(); ++i)
            if (layer.propagate[i]) clear(layer.bottom_diff(i), layer.bottoms[i]->count());
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        sums_.assign(static_cast<size_t>(layer.bottoms[0]->count()), 0);
        for (int64_t r = 0; r < rows_; ++r) {
            double* to = sums_.data() + first(r);
            for (int64_t i = 0; i < width_; ++i)
                to[i * inner_] += static_cast<double>(dy[r * width_ + i]);
        }
        float* dx = layer.bottom_diff();
        for (size_t i = 0; i < sums_.size(); ++i) dx[i] = static_cast<float>(sums_[i]);
    }

   private:
    // Where the values of a row of the top begin in the bottom.
    int64_t first(int64_t row) const {
        int64_t at = 0;
        for (size_t axis = top_.size(); axis-- > 1;) {
            at += row % top_[axis - 1] * steps_[axis - 1];
            row /= top_[axis - 1];
        }
        return at;
    }

    Shape top_, steps_;
    int64_t width_ = 0, rows_ = 0, inner_ = 0;
    std::vector<double> sums_;
};
}  // namespace

std::unique_ptr<Kernel> make_sized_like() {
    return make<SizedLike>();
}

}  // namespace sn
