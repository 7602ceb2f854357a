// The part of the first bottom that has the second one's size (Caffe: crop_layer.cpp).
#include "../engine/layer.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class Crop final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Shape &whole = layer.shape(), &part = layer.tops[0]->shape();
        const auto offset = layer.options.integers("offset");
        width_ = part.empty() ? 1 : part.back();
        rows_ = width_ == 0 ? 0 : count(part) / width_;
        first_.resize(static_cast<size_t>(rows_));
        for (int64_t r = 0; r < rows_; ++r) {
            int64_t left = r, at = part.empty() ? 0 : offset.back(), step = 1;
            for (size_t axis = part.size(); axis-- > 1;) {
                step *= whole[axis];
                at += (left % part[axis - 1] + offset[axis - 1]) * step;
                left /= part[axis - 1];
            }
            first_[static_cast<size_t>(r)] = at;
        }
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        each_row(
            [=](int64_t whole, int64_t part, int64_t n) { std::copy_n(x + whole, n, y + part); });
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        if (layer.propagate[1]) clear(layer.bottom_diff(1), layer.bottoms[1]->count());
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        clear(dx, layer.bottoms[0]->count());
        each_row(
            [=](int64_t whole, int64_t part, int64_t n) { std::copy_n(dy + part, n, dx + whole); });
    }

   private:
    template <class F>
    void each_row(F copy) const {
        parallel(
            rows_,
            [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r)
                    copy(first_[static_cast<size_t>(r)], r * width_, width_);
            },
            width_);
    }

    int64_t rows_ = 0, width_ = 0;
    std::vector<int64_t> first_;  // where each row of the part begins in the whole
};
}  // namespace

std::unique_ptr<Kernel> make_crop() {
    return make<Crop>();
}

}  // namespace sn
