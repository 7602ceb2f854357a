// Normalization of each record, or of a part of it.
#include <algorithm>
#include <cmath>

#include "../engine/lanes.hpp"
#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
// Zero mean and unit variance over the last axes (Ba, Kiros and Hinton, 2016).
// The sum of term(0) … term(n - 1), which vectors add up: sixteen sums whose order is the same on
// all processors.
template <class F>
SN_INLINE double sum_up(int64_t n, F term) {
    constexpr int64_t lanes = 16;
    double sums[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
        for (int64_t k = 0; k < lanes; ++k) sums[k] += term(i + k);
    for (; i < n; ++i) sums[i % lanes] += term(i);
    double sum = 0;
    for (double one : sums) sum += one;
    return sum;
}

class LayerNorm final : public Kernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        eps_ = layer.options.real("eps");
        rows_ = count(layer.shape(), 0, axis);
        width_ = count(layer.shape(), axis, layer.shape().size());
        factors_.assign(static_cast<size_t>(rows_), 0.0F);
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float *y = layer.top(), *factors = factors_.data();
        const int64_t width = width_;
        const double eps = eps_;
        parallel_each(width ? rows_ : 0, width * 4, [=](int64_t r) {
            const float* from = x + r * width;
            const double sum =
                sum_up(width, [=](int64_t i) { return static_cast<double>(from[i]); });
            const double mean = sum / static_cast<double>(width);
            const double squares = sum_up(width, [=](int64_t i) {
                const double d = static_cast<double>(from[i]) - mean;
                return d * d;
            });
            const double variance = squares / static_cast<double>(width);
            const auto factor = static_cast<float>(1 / std::sqrt(variance + eps));
            const auto shift = static_cast<float>(mean);
            for (int64_t i = 0; i < width; ++i) y[r * width + i] = (from[i] - shift) * factor;
            factors[r] = factor;
        });
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::top; }

    // dx = factor · (dy - mean(dy) - y · mean(dy · y))
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float *y = layer.tops[0]->data.read(), *dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        const float* factors = factors_.data();
        const int64_t width = width_;
        parallel_each(width ? rows_ : 0, width * 4, [=](int64_t r) {
            const float *at = y + r * width, *d = dy + r * width;
            double sum = 0, product = 0;
            for (int64_t i = 0; i < width; ++i) {
                sum += static_cast<double>(d[i]);
                product += static_cast<double>(d[i] * at[i]);
            }
            const auto mean = static_cast<float>(sum / static_cast<double>(width));
            const auto slope = static_cast<float>(product / static_cast<double>(width));
            for (int64_t i = 0; i < width; ++i)
                dx[r * width + i] = factors[r] * (d[i] - mean - at[i] * slope);
        });
    }

   private:
    double eps_ = 0;
    int64_t rows_ = 0, width_ = 0;
    std::vector<float> factors_;
};

// Zero mean and, if asked, unit deviation for each image or channel (Caffe: mvn_layer.cpp).
// eps is added to the deviation; the gradient treats it as Caffe does.
// Sums of f over a row, in several strands for the compiler's vectors.
template <class F>
double row_sum(int64_t n, F&& f) {
    double sums[8] = {}, rest = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int64_t k = 0; k < 8; ++k) sums[k] += static_cast<double>(f(i + k));
    for (; i < n; ++i) rest += static_cast<double>(f(i));
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest;
}

class MVN final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        const Shape& shape = layer.tops[0]->shape();
        const size_t axis = options.flag("across_channels") ? 1 : 2;
        rows_ = count(shape, 0, axis);
        size_ = count(shape, axis, 4);
        divides_ = options.flag("normalize_variance");
        eps_ = options.real32("eps");
        mean_.assign(static_cast<size_t>(rows_), 0.0F);
        deviation_.assign(static_cast<size_t>(rows_), 1.0F);
    }

    bool looks_back(const Layer&, Role role, size_t) const override {
        return role == Role::bottom && divides_;
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        parallel_each(rows_, 4 * size_, [&](int64_t r) {
            normalize(x + r * size_, y + r * size_, static_cast<size_t>(r));
        });
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float* x = divides_ ? layer.bottom() : nullptr;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        parallel_each(rows_, 4 * size_, [&](int64_t r) {
            const float* in = x ? x + r * size_ : nullptr;
            step_back(in, dy + r * size_, dx + r * size_, static_cast<size_t>(r));
        });
    }

   private:
    void normalize(const float* x, float* y, size_t r) {
        const auto n = static_cast<double>(size_);
        const float mean = static_cast<float>(row_sum(size_, [=](int64_t i) { return x[i]; }) / n);
        float deviation = 1;
        if (divides_) {
            const double squares = row_sum(size_, [=](int64_t i) {
                const float v = x[i] - mean;
                return v * v;
            });
            deviation = static_cast<float>(std::sqrt(squares / n)) + eps_;
        }
        for (int64_t i = 0; i < size_; ++i) y[i] = (x[i] - mean) / deviation;
        mean_[r] = mean, deviation_[r] = deviation;
    }

    void step_back(const float* x, const float* dy, float* dx, size_t r) const {
        const auto n = static_cast<double>(size_);
        const float mean = mean_[r], deviation = deviation_[r];
        const float slope =
            static_cast<float>(row_sum(size_, [=](int64_t i) { return dy[i]; }) / n);
        if (!x) {
            for (int64_t i = 0; i < size_; ++i) dx[i] = dy[i] - slope;
            return;
        }
        const double products =
            row_sum(size_, [=](int64_t i) { return dy[i] * ((x[i] - mean) / deviation); });
        const float tilt = static_cast<float>(products / n);
        for (int64_t i = 0; i < size_; ++i)
            dx[i] = (dy[i] - slope - tilt * ((x[i] - mean) / deviation)) / deviation;
    }

    int64_t rows_ = 0, size_ = 0;
    bool divides_ = true;
    float eps_ = 0;
    std::vector<float> mean_, deviation_;
};

// Divided by the Euclidean norm, times learned factors (SSD: normalize_layer.cpp).
class Normalize final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        const Shape& shape = layer.shape();
        num_ = shape[0], channels_ = shape[1];
        area_ = count(shape, 2, shape.size());
        whole_ = layer.options.flag("across_spatial");
        shared_ = layer.params.empty() || layer.options.flag("channel_shared");
        eps_ = layer.options.real32("eps");
        norms_.assign(static_cast<size_t>(num_ * area_), 0.0F);
        products_.assign(norms_.size(), 0.0F);
        sums_.assign(static_cast<size_t>(num_ * channels_), 0.0);
    }

    void forward(Layer& layer) override {
        const float *x = layer.bottom(), *factors = factors_of(layer);
        float* y = layer.top();
        parallel_each(num_, 4 * channels_ * area_, [&](int64_t n) {
            const float* in = x + n * channels_ * area_;
            float *out = y + n * channels_ * area_, *norm = norms_.data() + n * area_;
            reduce(in, in, norm, eps_);
            for (int64_t i = 0; i < area_; ++i) norm[i] = std::sqrt(norm[i]);
            for (int64_t c = 0; c < channels_; ++c) {
                const float factor = factors[shared_ ? 0 : c];
                for (int64_t i = 0; i < area_; ++i)
                    out[c * area_ + i] = in[c * area_ + i] / norm[i] * factor;
            }
        });
    }

    void backward(Layer& layer) override {
        const float *x = layer.bottom(), *dy = layer.top_diff();
        if (!layer.params.empty() && layer.learns[0]) learn(x, dy, layer.param_diff(0));
        if (!layer.propagate[0]) return;
        const float* factors = factors_of(layer);
        float* dx = layer.bottom_diff();
        parallel_each(num_, 4 * channels_ * area_, [&](int64_t n) {
            const int64_t at = n * channels_ * area_;
            step_back(x + at, dy + at, dx + at, factors, n);
        });
    }

   private:
    // A layer without parameters has the factor 1 (happynear's).
    static const float* factors_of(const Layer& layer) {
        static const float one = 1;
        return layer.params.empty() ? &one : layer.param(0);
    }

    // The sum of products over the channels of each place, or over the whole image at all places.
    void reduce(const float* a, const float* b, float* sums, float start) const {
        std::fill(sums, sums + area_, whole_ ? 0.0F : start);
        for (int64_t c = 0; c < channels_; ++c)
            for (int64_t i = 0; i < area_; ++i) sums[i] += a[c * area_ + i] * b[c * area_ + i];
        if (!whole_) return;
        double total = 0;
        for (int64_t i = 0; i < area_; ++i) total += static_cast<double>(sums[i]);
        std::fill(sums, sums + area_, static_cast<float>(total) + start);
    }

    void step_back(const float* x, const float* dy, float* dx, const float* factors, int64_t n) {
        const float* norm = norms_.data() + n * area_;
        float* product = products_.data() + n * area_;
        for (int64_t c = 0; c < channels_; ++c) {
            const float factor = factors[shared_ ? 0 : c];
            for (int64_t i = c * area_; i < (c + 1) * area_; ++i) dx[i] = dy[i] * factor;
        }
        reduce(x, dx, product, 0.0F);
        for (int64_t i = 0; i < area_; ++i) product[i] /= norm[i] * norm[i];
        for (int64_t c = 0; c < channels_; ++c)
            for (int64_t i = 0; i < area_; ++i) {
                float& d = dx[c * area_ + i];
                d = (d - x[c * area_ + i] * product[i]) / norm[i];
            }
    }

    void learn(const float* x, const float* dy, float* diff) {
        parallel_each(num_ * channels_, 4 * area_, [&](int64_t r) {
            const float* norm = norms_.data() + r / channels_ * area_;
            double sum = 0;
            for (int64_t i = 0; i < area_; ++i)
                sum += static_cast<double>(dy[r * area_ + i] * (x[r * area_ + i] / norm[i]));
            sums_[static_cast<size_t>(r)] = sum;
        });
        for (int64_t c = 0; c < channels_; ++c) {
            double sum = 0;
            for (int64_t n = 0; n < num_; ++n) sum += sums_[static_cast<size_t>(n * channels_ + c)];
            diff[shared_ ? 0 : c] += static_cast<float>(sum);
        }
    }

    int64_t num_ = 0, channels_ = 0, area_ = 0;
    bool whole_ = true, shared_ = true;
    float eps_ = 0;
    std::vector<float> norms_, products_;
    std::vector<double> sums_;
};
}  // namespace

REGISTER_LAYER(LayerNorm, LayerNorm);
REGISTER_LAYER(MVN, MVN);
REGISTER_LAYER(Normalize, Normalize);

}  // namespace sn
