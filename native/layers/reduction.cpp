// Sums, means and maxima along axes.
#include <algorithm>
#include <cmath>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"
#include "no_gradient.hpp"
#include "rows.hpp"

namespace sn {

namespace {
// A sum, mean, sum of magnitudes or of squares over the last axes (Caffe: reduction_layer.cpp).
enum class Operation { sum, magnitudes, squares, mean };

Operation named(const std::string& name) {
    if (name == "asum") return Operation::magnitudes;
    if (name == "sumsq") return Operation::squares;
    return name == "mean" ? Operation::mean : Operation::sum;
}

class Reduction final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        rows_ = count(layer.shape(), 0, axis);
        width_ = count(layer.shape(), axis, layer.shape().size());
        operation_ = named(layer.options.text("operation"));
        factor_ = layer.options.real32("coeff");
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
                width, 1, [=](int64_t i) { return static_cast<double>(term(x[r * width + i])); });
        };
        if (rows_ < 32) {
            for (int64_t r = 0; r < rows_; ++r) y[r] = static_cast<float>(row(r)) * factor;
            return;
        }
        parallel_each(rows_, width_, [=](int64_t r) {
            double sum = 0;
            for (int64_t i = 0; i < width; ++i) sum += static_cast<double>(term(x[r * width + i]));
            y[r] = static_cast<float>(sum) * factor;
        });
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

// The sum of each value and those before it along an axis.
class CumSum final : public LinearKernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        const Shape& shape = layer.shape();
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        exclusive_ = layer.options.flag("exclusive");
        reverse_ = layer.options.flag("reverse");
        outer_ = count(shape, 0, axis);
        size_ = shape[axis];
        inner_ = count(shape, axis + 1, shape.size());
    }

    void forward(Layer& layer) override { sum(layer.bottom(), layer.top(), reverse_); }

    // Each value is in the sums that follow it.
    void backward(Layer& layer) override {
        if (layer.propagate[0]) sum(layer.top_diff(), layer.bottom_diff(), !reverse_);
    }

   private:
    void sum(const float* x, float* y, bool reverse) const {
        const int64_t size = size_, inner = inner_;
        const bool exclusive = exclusive_;
        parallel_each(outer_ * inner, size_, [=](int64_t r) {
            const int64_t first = r / inner * size * inner + r % inner;
            double total = 0;
            for (int64_t i = 0; i < size; ++i) {
                const int64_t at = first + (reverse ? size - 1 - i : i) * inner;
                const auto value = static_cast<double>(x[at]);
                y[at] = static_cast<float>(exclusive ? total : total + value);
                total += value;
            }
        });
    }

    bool exclusive_ = false, reverse_ = false;
    int64_t outer_ = 0, size_ = 0, inner_ = 0;
};

// The places of the largest values; of equals the later one (Caffe: argmax_layer.cpp).
class ArgMax final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        along_axis_ = layer.options.has("axis");
        outer_ = layer.options.integer("outer");
        channels_ = layer.options.integer("channels");
        inner_ = layer.options.integer("inner");
        top_k_ = layer.options.integer("top_k");
        values_ = layer.options.flag("out_max_val");
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        parallel(outer_ * inner_, channels_ * 4, [&](int64_t begin, int64_t end) {
            std::vector<int64_t> places(static_cast<size_t>(channels_));
            for (int64_t i = begin; i < end; ++i) {
                const float* from = x + i / inner_ * channels_ * inner_ + i % inner_;
                find(from, places);
                write(from, places, y, i);
            }
        });
    }

    void backward(Layer& layer) override { refuse_backward(layer); }

   private:
    // NaN comes after every number.
    static bool before(float a, int64_t i, float b, int64_t j) {
        if (a > b) return true;
        if (a < b) return false;
        const bool nan_a = a != a, nan_b = b != b;
        return nan_a == nan_b ? i > j : nan_b;
    }

    // Puts the best top_k places first.
    void find(const float* x, std::vector<int64_t>& places) const {
        const auto better = [&](int64_t i, int64_t j) {
            return before(x[i * inner_], i, x[j * inner_], j);
        };
        if (top_k_ == 1) {
            int64_t best = 0;
            for (int64_t c = 1; c < channels_; ++c)
                if (better(c, best)) best = c;
            places[0] = best;
            return;
        }
        for (int64_t c = 0; c < channels_; ++c) places[static_cast<size_t>(c)] = c;
        std::partial_sort(places.begin(), places.begin() + top_k_, places.end(), better);
    }

    void write(const float* x, const std::vector<int64_t>& places, float* y, int64_t i) const {
        for (int64_t k = 0; k < top_k_; ++k) {
            const int64_t place = places[static_cast<size_t>(k)];
            const auto number = static_cast<float>(place);
            if (along_axis_) {
                y[(i / inner_ * top_k_ + k) * inner_ + i % inner_] =
                    values_ ? x[place * inner_] : number;
            } else if (values_) {
                y[2 * i * top_k_ + k] = number;
                y[(2 * i + 1) * top_k_ + k] = x[place];
            } else {
                y[i * top_k_ + k] = number;
            }
        }
    }

    int64_t outer_ = 0, channels_ = 0, inner_ = 0, top_k_ = 1;
    bool along_axis_ = false, values_ = false;
};
}  // namespace

REGISTER_LAYER(Reduction, Reduction);
REGISTER_LAYER(CumSum, CumSum);
REGISTER_LAYER(ArgMax, ArgMax);

}  // namespace sn
