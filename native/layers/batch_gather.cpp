// Values at places that another blob holds for each record.
#include "../engine/layer.hpp"
#include "indices.hpp"
#include "no_gradient.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class BatchGather final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Shape& shape = layer.shape();
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        size_ = shape[axis];
        inner_ = count(shape, axis + 1, shape.size());
        outer_ = count(shape, 0, axis);
        const auto places = static_cast<size_t>(layer.bottoms[1]->count());
        each_ = outer_ == 0 ? 0 : static_cast<int64_t>(places) / outer_;
        picked_.assign(places, -1);
    }

    void forward(Layer& layer) override {
        find(layer);
        const float* x = layer.bottom();
        float* y = layer.top();
        parallel(
            static_cast<int64_t>(picked_.size()),
            [=](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n)
                    std::copy_n(x + picked_[static_cast<size_t>(n)] * inner_, inner_,
                                y + n * inner_);
            },
            inner_);
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "places");
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        clear(dx, layer.bottoms[0]->count());
        parallel(
            outer_,
            [=](int64_t begin, int64_t end) {
                for (int64_t n = begin * each_; n < end * each_; ++n) {
                    const int64_t row = picked_[static_cast<size_t>(n)];
                    if (row < 0) continue;
                    for (int64_t i = 0; i < inner_; ++i) dx[row * inner_ + i] += dy[n * inner_ + i];
                }
            },
            each_ * inner_);
    }

   private:
    void find(const Layer& layer) {
        const float* places = layer.bottom(1);
        for (size_t n = 0; n < picked_.size(); ++n) {
            const float place = places[n] < 0 ? places[n] + static_cast<float>(size_) : places[n];
            const int64_t found = index_of(place, size_);
            if (found < 0)
                layer.refuse("place " + number_text(places[n]) +
                             " is out of range for an axis of " + std::to_string(size_));
            picked_[n] = static_cast<int64_t>(n) / each_ * size_ + found;
        }
    }

    int64_t outer_ = 0, size_ = 0, inner_ = 0, each_ = 0;
    std::vector<int64_t> picked_;  // rows of the bottom
};
}  // namespace

std::unique_ptr<Kernel> make_batch_gather() {
    return make<BatchGather>();
}

}  // namespace sn
