// Images of another size by interpolation.
#include <cmath>

#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"
#include "formats.hpp"
#include "rows.hpp"

namespace sn {

namespace {
// An image of another size, by the rules of ONNX's Resize.
// The lines of the source that one line of the target is made of, and their shares.
struct Mixture {
    int64_t line[4] = {0, 0, 0, 0};
    float share[4] = {1, 0, 0, 0};
};

// One axis: `from` lines become `to`, `scale` times as many.
class Axis {
   public:
    Axis(const Options& options, int64_t from, int64_t to, double scale)
        : places_(options.text("coordinates")),
          rounding_(options.text("nearest_mode")),
          mode_(options.text("mode")),
          coefficient_(options.real("cubic_coeff_a")),
          exclude_(options.flag("exclude_outside")),
          from_(from),
          to_(to),
          scale_(scale) {}

    int64_t lines() const { return mode_ == "nearest" ? 1 : mode_ == "linear" ? 2 : 4; }

    std::vector<Mixture> mixtures() const {
        std::vector<Mixture> found(static_cast<size_t>(to_));
        for (int64_t i = 0; i < to_; ++i) found[static_cast<size_t>(i)] = mixture(place(i));
        return found;
    }

   private:
    double place(int64_t i) const {
        const auto at = static_cast<double>(i);
        if (places_ == "asymmetric") return at / scale_;
        if (places_ == "align_corners")
            return to_ > 1 ? at * static_cast<double>(from_ - 1) / static_cast<double>(to_ - 1) : 0;
        if (places_ == "pytorch_half_pixel" && to_ <= 1) return 0;
        if (places_ == "half_pixel_symmetric") {
            const double shrunk = static_cast<double>(to_) / (scale_ * static_cast<double>(from_));
            const double centre = static_cast<double>(from_) / 2;
            return centre * (1 - shrunk) + (at + 0.5) / scale_ - 0.5;
        }
        return (at + 0.5) / scale_ - 0.5;
    }

    int64_t inside(int64_t line) const { return std::min(std::max<int64_t>(line, 0), from_ - 1); }

    Mixture mixture(double at) const {
        Mixture found;
        if (mode_ == "nearest") {
            found.line[0] = inside(rounded(at));
        } else if (mode_ == "linear") {
            const double kept = std::min(std::max(at, 0.0), static_cast<double>(from_ - 1));
            const double low = std::floor(kept);
            found.line[0] = inside(static_cast<int64_t>(low));
            found.line[1] = inside(static_cast<int64_t>(low) + 1);
            found.share[1] = static_cast<float>(kept - low);
            found.share[0] = static_cast<float>(1 - (kept - low));
        } else {
            cubic(at, found);
        }
        return found;
    }

    int64_t rounded(double at) const {
        if (rounding_ == "floor") return static_cast<int64_t>(std::floor(at));
        if (rounding_ == "ceil") return static_cast<int64_t>(std::ceil(at));
        if (rounding_ == "round_prefer_ceil") return static_cast<int64_t>(std::floor(at + 0.5));
        return static_cast<int64_t>(std::ceil(at - 0.5));
    }

    // Keys' kernel (1981).
    void cubic(double at, Mixture& found) const {
        const double low = std::floor(at), t = at - low, a = coefficient_;
        const double far = 1 + t, near = t, next = 1 - t, last = 2 - t;
        const auto outer = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
        const auto inner = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
        double shares[4] = {outer(far), inner(near), inner(next), outer(last)}, sum = 0;
        for (int64_t k = 0; k < 4; ++k) {
            const int64_t line = static_cast<int64_t>(low) - 1 + k;
            if (exclude_ && line != inside(line)) shares[k] = 0;
            found.line[k] = inside(line);
            sum += shares[k];
        }
        for (int64_t k = 0; k < 4; ++k)
            found.share[k] = static_cast<float>(exclude_ && sum != 0 ? shares[k] / sum : shares[k]);
    }

    const std::string &places_, &rounding_, &mode_;
    double coefficient_;
    bool exclude_;
    int64_t from_, to_;
    double scale_;
};

class Resize final : public LinearKernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        const Shape &in = layer.shape(), &out = layer.tops[0]->shape();
        planes_ = count(in, 0, 2);
        high_ = in[2], wide_ = in[3], top_high_ = out[2], top_wide_ = out[3];
        const auto scales = layer.options.reals("scales");
        if (scales.size() != 2) layer.refuse("needs two scales");
        const Axis rows(layer.options, high_, top_high_, scales[0]);
        const Axis columns(layer.options, wide_, top_wide_, scales[1]);
        lines_ = rows.lines();
        if (layer.tops[0]->count() == 0) return;
        rows_ = rows.mixtures(), columns_ = columns.mixtures();
    }

    void forward(Layer& layer) override {
        if (layer.tops[0]->count() == 0) return;
        const float* x = layer.bottom();
        float* y = layer.top();
        parallel(planes_ * top_high_, (top_wide_ + wide_) * lines_,
                 [this, x, y](int64_t begin, int64_t end) {
                     std::vector<float> line(static_cast<size_t>(wide_));
                     for (int64_t r = begin; r < end; ++r)
                         row(x + r / top_high_ * high_ * wide_,
                             rows_[static_cast<size_t>(r % top_high_)], line.data(),
                             y + r * top_wide_);
                 });
    }

    void backward(Layer& layer) override {
        layer.clear_bottom_diffs(1);
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        parallel(planes_, (top_wide_ + wide_) * lines_ * top_high_,
                 [this, dy, dx](int64_t begin, int64_t end) {
                     std::fill(dx + begin * high_ * wide_, dx + end * high_ * wide_, 0.0F);
                     std::vector<float> line(static_cast<size_t>(wide_));
                     for (int64_t r = begin * top_high_; r < end * top_high_; ++r)
                         add_row(dy + r * top_wide_, rows_[static_cast<size_t>(r % top_high_)],
                                 line.data(), dx + r / top_high_ * high_ * wide_);
                 });
    }

   private:
    void row(const float* image, const Mixture& m, float* line, float* y) const {
        for (int64_t i = 0; i < wide_; ++i) {
            float sum = 0;
            for (int64_t k = 0; k < lines_; ++k) sum += m.share[k] * image[m.line[k] * wide_ + i];
            line[i] = sum;
        }
        for (int64_t i = 0; i < top_wide_; ++i) {
            const Mixture& c = columns_[static_cast<size_t>(i)];
            float sum = 0;
            for (int64_t k = 0; k < lines_; ++k) sum += c.share[k] * line[c.line[k]];
            y[i] = sum;
        }
    }

    void add_row(const float* dy, const Mixture& m, float* line, float* image) const {
        std::fill_n(line, wide_, 0.0F);
        for (int64_t i = 0; i < top_wide_; ++i) {
            const Mixture& c = columns_[static_cast<size_t>(i)];
            for (int64_t k = 0; k < lines_; ++k) line[c.line[k]] += c.share[k] * dy[i];
        }
        for (int64_t k = 0; k < lines_; ++k)
            for (int64_t i = 0; i < wide_; ++i)
                image[m.line[k] * wide_ + i] += m.share[k] * line[i];
    }

    int64_t planes_ = 0, high_ = 0, wide_ = 0, top_high_ = 0, top_wide_ = 0, lines_ = 1;
    std::vector<Mixture> rows_, columns_;
};

// Bilinear resizing with aligned corners, after cropping (interp_layer.cpp of DeepLab, PSPNet).
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

class Interp final : public LinearKernel {
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
        const auto* x = floats(from);
        auto* y = floats(to);
        parallel_each(walk.outer * top_high_, top_wide_ * walk.inner * 8, [&](int64_t r) {
            row(x + r / top_high_ * high_ * wide_ * walk.inner,
                rows_[static_cast<size_t>(r % top_high_)], walk.inner,
                y + r * top_wide_ * walk.inner);
        });
    }

    void backward(Layer& layer) override {
        layer.clear_bottom_diffs(1);
        if (!layer.propagate[0]) return;
        Tensor &bottom = layer.bottoms[0]->diff, &top = layer.tops[0]->diff;
        const Walk walk(*this, top, bottom.shape());
        const auto from = top.read(walk.source), to = bottom.write(walk.target);
        const auto* dy = floats(from);
        auto* dx = floats(to);
        const int64_t image = high_ * wide_ * walk.inner;
        parallel(walk.outer, top_high_ * top_wide_ * walk.inner * 8,
                 [&](int64_t begin, int64_t end) {
                     std::fill(dx + begin * image, dx + end * image, 0.0F);
                     for (int64_t o = begin; o < end; ++o)
                         for (int64_t r = 0; r < top_high_; ++r)
                             add_row(dy + (o * top_high_ + r) * top_wide_ * walk.inner,
                                     rows_[static_cast<size_t>(r)], walk.inner, dx + o * image);
                 });
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

REGISTER_LAYER(Resize, Resize);
REGISTER_LAYER(Interp, Interp);

}  // namespace sn
