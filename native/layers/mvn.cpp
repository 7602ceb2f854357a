// Zero mean and, if asked, unit deviation for each image or channel (Caffe: mvn_layer.cpp).
// eps is added to the deviation; the gradient treats it as Caffe does.
#include <algorithm>
#include <cmath>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
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
        eps_ = static_cast<float>(options.real("eps"));
        mean_.assign(static_cast<size_t>(rows_), 0.0F);
        deviation_.assign(static_cast<size_t>(rows_), 1.0F);
    }

    bool looks_back(const Layer&, Role role, size_t) const override {
        return role == Role::bottom && divides_;
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        each_row(
            [&](int64_t r) { normalize(x + r * size_, y + r * size_, static_cast<size_t>(r)); });
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float* x = divides_ ? layer.bottom() : nullptr;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        each_row([&](int64_t r) {
            const float* in = x ? x + r * size_ : nullptr;
            step_back(in, dy + r * size_, dx + r * size_, static_cast<size_t>(r));
        });
    }

   private:
    template <class F>
    void each_row(F&& body) const {
        parallel(
            rows_,
            [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) body(r);
            },
            4 * size_);
    }

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
}  // namespace

std::unique_ptr<Kernel> make_mvn() {
    return make<MVN>();
}

}  // namespace sn
