// The same values in another shape or order, repeated, or a part of them.
#include <algorithm>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"
#include "rows.hpp"

namespace sn {

namespace {
// The same values, and gradients, under another shape (Caffe: reshape_layer.cpp,
// flatten_layer.cpp).
class Reshape final : public LinearKernel {
   public:
    bool rounds(const Layer& layer, const Blob&) const override {
        return leaves_to_rounding(layer);
    }
    std::optional<Strided> moves(const Layer&, const Blob& top) const override {
        return as_they_are(top.count());
    }
    void reshape(Layer& layer) override {
        layer.tops[0]->data.share(layer.bottoms[0]->data);
        layer.tops[0]->diff.share(layer.bottoms[0]->diff);
    }
    void forward(Layer&) override {}
};

// The part of the first bottom that has the second one's size (Caffe: crop_layer.cpp).
class Crop final : public LinearKernel {
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

    void backward(Layer& layer) override {
        layer.clear_bottom_diffs(1);
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
        parallel_each(rows_, width_,
                      [&](int64_t r) { copy(first_[static_cast<size_t>(r)], r * width_, width_); });
    }

    int64_t rows_ = 0, width_ = 0;
    std::vector<int64_t> first_;  // where each row of the part begins in the whole
};

// Images turned round (happynear's Caffe: flip_layer.cpp).
class Flip final : public LinearKernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        across_ = layer.options.flag("flip_width");
        down_ = layer.options.flag("flip_height");
        const Shape& in = layer.shape();
        planes_ = in[0] * in[1], high_ = in[2], wide_ = in[3];
    }

    void forward(Layer& layer) override { turn(layer.bottom(), layer.top()); }

    void backward(Layer& layer) override {
        if (layer.propagate[0]) turn(layer.top_diff(), layer.bottom_diff());
    }

   private:
    void turn(const float* from, float* to) const {
        parallel_each(planes_ * high_, wide_, [=](int64_t r) {
            const int64_t h = r % high_, row = down_ ? r - h + high_ - 1 - h : r;
            const float* line = from + row * wide_;
            across_ ? std::reverse_copy(line, line + wide_, to + r * wide_)
                    : std::copy_n(line, wide_, to + r * wide_);
        });
    }

    bool across_ = true, down_ = false;
    int64_t planes_ = 0, high_ = 0, wide_ = 0;
};

// One axis from its end to its beginning (CTPN's Caffe: reverse_layer.cpp).
class Reverse final : public LinearKernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        outer_ = layer.options.integer("outer"), many_ = layer.options.integer("many");
        inner_ = layer.options.integer("inner");
    }

    void forward(Layer& layer) override { turn(layer.bottom(), layer.top()); }

    void backward(Layer& layer) override {
        if (layer.propagate[0]) turn(layer.top_diff(), layer.bottom_diff());
    }

   private:
    void turn(const float* from, float* to) const {
        parallel_each(outer_ * many_, inner_, [=](int64_t r) {
            const int64_t place = r % many_, other = r - place + many_ - 1 - place;
            std::copy_n(from + other * inner_, inner_, to + r * inner_);
        });
    }

    int64_t outer_ = 0, many_ = 0, inner_ = 0;
};

// Copies of a blob side by side along an axis (Caffe: tile_layer.cpp).
class Tile final : public LinearKernel {
   public:
    std::optional<Strided> moves(const Layer& layer, const Blob&) const override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        const int64_t outer = count(layer.shape(), 0, axis);
        const int64_t inner = count(layer.shape(), axis, layer.shape().size());
        return Strided{0, {{outer, inner}, {layer.options.integer("tiles"), 0}, {inner, 1}}, 1};
    }

    void reshape(Layer& layer) override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        tiles_ = layer.options.integer("tiles");
        outer_ = count(layer.shape(), 0, axis);
        inner_ = count(layer.shape(), axis, layer.shape().size());
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        const int64_t tiles = tiles_, inner = inner_;
        parallel_each(outer_ * tiles_, inner_,
                      [=](int64_t r) { std::copy_n(x + r / tiles * inner, inner, y + r * inner); });
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        const int64_t tiles = tiles_, inner = inner_;
        parallel_each(outer_, inner_ * tiles_, [=](int64_t o) {
            float* sum = dx + o * inner;
            std::copy_n(dy + o * tiles * inner, inner, sum);
            for (int64_t t = 1; t < tiles; ++t) {
                const float* more = dy + (o * tiles + t) * inner;
                for (int64_t i = 0; i < inner; ++i) sum[i] += more[i];
            }
        });
    }

   private:
    int64_t tiles_ = 1, outer_ = 0, inner_ = 0;
};

// Values under sizes that are read from other blobs: spread, cut off or reshaped.
class SizedLike final : public LinearKernel {
   public:
    bool only_reads() const override { return true; }

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
        parallel_each(rows_, width_, [=](int64_t r) {
            const float* from = x + first(r);
            if (inner_ != 0)
                std::copy_n(from, width_, y + r * width_);
            else
                std::fill_n(y + r * width_, width_, *from);
        });
    }

    void backward(Layer& layer) override {
        layer.clear_bottom_diffs(1);
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

REGISTER_LAYER(Reshape, Reshape);
REGISTER_LAYER(Flatten, Reshape);
REGISTER_LAYER(Crop, Crop);
REGISTER_LAYER(Flip, Flip);
REGISTER_LAYER(Reverse, Reverse);
REGISTER_LAYER(Tile, Tile);
REGISTER_LAYER(SizedLike, SizedLike);

}  // namespace sn
