// Bilinear resizing with aligned corners, after cropping (interp_layer.cpp of DeepLab, PSPNet).
#include "../engine/layer.hpp"
#include "formats.hpp"
#include "rows.hpp"

namespace sn {

namespace {
// Between which two lines of the source one of the target lies, and how near to each.
struct Between {
    int64_t low = 0, high = 0;
    float near_low = 1, near_high = 0;
};

// Of `from` lines, the first at `first`, `to` lines.
std::vector<Between> lines(int64_t first, int64_t from, int64_t to) {
    std::vector<Between> found(static_cast<size_t>(to));
    const float ratio = to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1) : 0.0F;
    for (int64_t i = 0; i < to; ++i) {
        Between& line = found[static_cast<size_t>(i)];
        const float at = ratio * static_cast<float>(i);
        const int64_t low = std::min(static_cast<int64_t>(at), from - 1);
        line.low = first + low;
        line.high = line.low + (low < from - 1 ? 1 : 0);
        line.near_high = at - static_cast<float>(low);
        line.near_low = 1.0F - line.near_high;
    }
    return found;
}

class Interp final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        Shape in = layer.shape();
        in.resize(4, 1);  // blobs of fewer axes are read as images too
        const Shape& out = layer.tops[0]->shape();
        const int64_t begin = -layer.options.integer("pad_beg");
        const int64_t crop = begin - layer.options.integer("pad_end");
        high_ = in[2], wide_ = in[3], top_high_ = out[2], top_wide_ = out[3];
        images_ = in[0] * in[1];
        rows_ = lines(begin, high_ - crop, top_high_);
        columns_ = lines(begin, wide_ - crop, top_wide_);
        same_ = high_ - crop == top_high_ && wide_ - crop == top_wide_;
    }

    void forward(Layer& layer) override {
        Tensor &bottom = layer.bottoms[0]->data, &top = layer.tops[0]->data;
        const Walk walk(*this, bottom, top.shape());
        const auto from = bottom.read(walk.source), to = top.write(walk.target);
        const auto* x = static_cast<const float*>(from.get_data_handle());
        auto* y = static_cast<float*>(to.get_data_handle());
        parallel(
            walk.outer * top_high_,
            [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r)
                    row(x + r / top_high_ * high_ * wide_ * walk.inner,
                        rows_[static_cast<size_t>(r % top_high_)], walk.inner,
                        y + r * top_wide_ * walk.inner);
            },
            top_wide_ * walk.inner * 8);
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        if (layer.bottoms.size() > 1 && layer.propagate[1])
            clear(layer.bottom_diff(1), layer.bottoms[1]->count());
        if (!layer.propagate[0]) return;
        Tensor &bottom = layer.bottoms[0]->diff, &top = layer.tops[0]->diff;
        const Walk walk(*this, top, bottom.shape());
        const auto from = top.read(walk.source), to = bottom.write(walk.target);
        const auto* dy = static_cast<const float*>(from.get_data_handle());
        auto* dx = static_cast<float*>(to.get_data_handle());
        const int64_t image = high_ * wide_ * walk.inner;
        parallel(
            walk.outer,
            [&](int64_t begin, int64_t end) {
                std::fill(dx + begin * image, dx + end * image, 0.0F);
                for (int64_t o = begin; o < end; ++o)
                    for (int64_t r = 0; r < top_high_; ++r)
                        add_row(dy + (o * top_high_ + r) * top_wide_ * walk.inner,
                                rows_[static_cast<size_t>(r)], walk.inner, dx + o * image);
            },
            top_high_ * top_wide_ * walk.inner * 8);
    }

   private:
    // Planes for blobs of any number of axes.
    struct Walk : Planes {
        Walk(const Interp& of, const Tensor& from, const Shape& made) : Planes(from, made) {
            if (inner == 1) outer = of.images_;
        }
    };

    void row(const float* x, const Between& r, int64_t inner, float* y) const {
        const float *above = x + r.low * wide_ * inner, *below = x + r.high * wide_ * inner;
        if (same_) {
            std::copy_n(above + columns_[0].low * inner, top_wide_ * inner, y);
            return;
        }
        for (const Between& c : columns_) {
            const int64_t left = c.low * inner, right = c.high * inner;
            for (int64_t i = 0; i < inner; ++i)
                y[i] =
                    r.near_low * (c.near_low * above[left + i] + c.near_high * above[right + i]) +
                    r.near_high * (c.near_low * below[left + i] + c.near_high * below[right + i]);
            y += inner;
        }
    }

    void add_row(const float* dy, const Between& r, int64_t inner, float* dx) const {
        float *above = dx + r.low * wide_ * inner, *below = dx + r.high * wide_ * inner;
        for (const Between& c : columns_) {
            const int64_t left = c.low * inner, right = c.high * inner;
            for (int64_t i = 0; i < inner; ++i) {
                above[left + i] += r.near_low * c.near_low * dy[i];
                above[right + i] += r.near_low * c.near_high * dy[i];
                below[left + i] += r.near_high * c.near_low * dy[i];
                below[right + i] += r.near_high * c.near_high * dy[i];
            }
            dy += inner;
        }
    }

    int64_t images_ = 0, high_ = 0, wide_ = 0, top_high_ = 0, top_wide_ = 0;
    std::vector<Between> rows_, columns_;
    bool same_ = false;
};
}  // namespace

std::unique_ptr<Kernel> make_interp() {
    return make<Interp>();
}

}  // namespace sn
