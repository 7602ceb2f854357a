// A sum, mean, sum of magnitudes or of squares over the last axes (Caffe: reduction_layer.cpp).
#include <cmath>

#include "../engine/layer.hpp"
#include "rows.hpp"

namespace sn {

namespace {
enum class Operation { sum, magnitudes, squares, mean };

Operation named(const std::string& name) {
    if (name == "asum") return Operation::magnitudes;
    if (name == "sumsq") return Operation::squares;
    return name == "mean" ? Operation::mean : Operation::sum;
}

class Reduction final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        rows_ = count(layer.shape(), 0, axis);
        width_ = count(layer.shape(), axis, layer.shape().size());
        operation_ = named(layer.options.text("operation"));
        factor_ = static_cast<float>(layer.options.real("coeff"));
        if (operation_ == Operation::mean && width_ > 0) factor_ /= static_cast<float>(width_);
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        switch (operation_) {
            case Operation::magnitudes:
                return reduce(x, y, [](float v) { return std::fabs(v); });
            case Operation::squares:
                return reduce(x, y, [](float v) { return v * v; });
            default:
                return reduce(x, y, [](float v) { return v; });
        }
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float *x = layer.bottom(), *dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        switch (operation_) {
            case Operation::magnitudes:
                return spread(x, dy, dx, [](float d, float v) {
                    return v > 0 ? d : v < 0 ? -d : 0.0F;
                });
            case Operation::squares:
                return spread(x, dy, dx, [](float d, float v) { return 2 * d * v; });
            default:
                return spread(x, dy, dx, [](float d, float) { return d; });
        }
    }

   private:
    // All threads sum each of a few rows; one thread sums each of many. The results do not depend
    // on the number of threads.
    template <class F>
    void reduce(const float* x, float* y, F term) const {
        const int64_t width = width_;
        const float factor = factor_;
        const auto row = [=](int64_t r) {
            return parallel_sum(
                width, [=](int64_t i) { return static_cast<double>(term(x[r * width + i])); });
        };
        if (rows_ < 32) {
            for (int64_t r = 0; r < rows_; ++r) y[r] = static_cast<float>(row(r)) * factor;
            return;
        }
        parallel(
            rows_,
            [=](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                    double sum = 0;
                    for (int64_t i = 0; i < width; ++i)
                        sum += static_cast<double>(term(x[r * width + i]));
                    y[r] = static_cast<float>(sum) * factor;
                }
            },
            width_);
    }

    template <class F>
    void spread(const float* x, const float* dy, float* dx, F gradient) const {
        const int64_t width = width_;
        const float factor = factor_;
        if (width == 0) return;
        parallel(rows_ * width, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end;) {
                const int64_t r = i / width, stop = std::min(end, (r + 1) * width);
                const float d = dy[r] * factor;
                for (; i < stop; ++i) dx[i] = gradient(d, x[i]);
            }
        });
    }

    int64_t rows_ = 0, width_ = 0;
    Operation operation_ = Operation::sum;
    float factor_ = 1;
};
}  // namespace

std::unique_ptr<Kernel> make_reduction() {
    return make<Reduction>();
}

}  // namespace sn
