// Zero mean and unit variance over the last axes (Ba, Kiros and Hinton, 2016).
#include <cmath>

#include "../engine/lanes.hpp"
#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
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
        parallel(
            width ? rows_ : 0,
            [=](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
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
                    for (int64_t i = 0; i < width; ++i)
                        y[r * width + i] = (from[i] - shift) * factor;
                    factors[r] = factor;
                }
            },
            width * 4);
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::top; }

    // dx = factor · (dy - mean(dy) - y · mean(dy · y))
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float *y = layer.tops[0]->data.read(), *dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        const float* factors = factors_.data();
        const int64_t width = width_;
        parallel(
            width ? rows_ : 0,
            [=](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
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
                }
            },
            width * 4);
    }

   private:
    double eps_ = 0;
    int64_t rows_ = 0, width_ = 0;
    std::vector<float> factors_;
};
}  // namespace

std::unique_ptr<Kernel> make_layer_norm() {
    return make<LayerNorm>();
}

}  // namespace sn
