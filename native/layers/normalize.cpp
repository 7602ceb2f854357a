// Divided by the Euclidean norm, times learned factors (SSD: normalize_layer.cpp).
#include <cmath>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
class Normalize final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Shape& shape = layer.shape();
        num_ = shape[0], channels_ = shape[1];
        area_ = count(shape, 2, shape.size());
        whole_ = layer.options.flag("across_spatial");
        shared_ = layer.params.empty() || layer.options.flag("channel_shared");
        eps_ = static_cast<float>(layer.options.real("eps"));
        norms_.assign(static_cast<size_t>(num_ * area_), 0.0F);
        products_.assign(norms_.size(), 0.0F);
        sums_.assign(static_cast<size_t>(num_ * channels_), 0.0);
    }

    void forward(Layer& layer) override {
        const float *x = layer.bottom(), *factors = factors_of(layer);
        float* y = layer.top();
        images([&](int64_t n) {
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

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        const float *x = layer.bottom(), *dy = layer.top_diff();
        if (!layer.params.empty() && layer.learns[0]) learn(x, dy, layer.param_diff(0));
        if (!layer.propagate[0]) return;
        const float* factors = factors_of(layer);
        float* dx = layer.bottom_diff();
        images([&](int64_t n) {
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

    template <class F>
    void images(F&& body) const {
        parallel(
            num_,
            [&](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) body(n);
            },
            4 * channels_ * area_);
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
        parallel(
            num_ * channels_,
            [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                    const float* norm = norms_.data() + r / channels_ * area_;
                    double sum = 0;
                    for (int64_t i = 0; i < area_; ++i)
                        sum +=
                            static_cast<double>(dy[r * area_ + i] * (x[r * area_ + i] / norm[i]));
                    sums_[static_cast<size_t>(r)] = sum;
                }
            },
            4 * area_);
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

std::unique_ptr<Kernel> make_normalize() {
    return make<Normalize>();
}

}  // namespace sn
