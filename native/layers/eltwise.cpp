// Arithmetic of several blobs.
#include <algorithm>

#include "../engine/channels.hpp"
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"
#include "../engine/plan/attention_part.hpp"
#include "neuron.hpp"
#include "no_gradient.hpp"
#include "spread.hpp"

namespace sn {

namespace {
// The product, weighted sum or maximum of blobs of one shape (Caffe: eltwise_layer.cpp).
class Eltwise final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const std::string& name = layer.options.text("operation");
        operation_ =
            name == "prod" ? Operation::prod : (name == "sum" ? Operation::sum : Operation::max);
        stable_ = layer.options.flag("stable_prod_grad");
        coefficients_ = layer.options.reals32("coeff");
        if (const Layer* relu = layer.fused_relu) slope_ = *relu->kernel->relu_slope(*relu);
    }

    bool looks_back(const Layer&, Role role, size_t) const override {
        return role == Role::bottom && operation_ != Operation::sum;
    }
    Followers followers(const Layer& layer) const override {
        return layer.train ? Followers::relu : Followers::none;
    }
    bool adds_two(const Layer& layer) const override {
        if (layer.options.text("operation") != "sum" || layer.bottoms.size() != 2) return false;
        const auto factors = layer.options.reals("coeff");
        return std::all_of(factors.begin(), factors.end(), [](double c) { return c == 1; });
    }
    bool fuses() const override { return operation_ == Operation::sum; }

    void forward(Layer& layer) override {
        const auto desc = layout(layer);
        const auto inputs = read(layer, desc);
        const auto top = layer.tops[0]->data.write(desc);
        typed(desc, [&](auto type) {
            using T = decltype(type);
            if (operation_ == Operation::sum)
                add_up(pointers<T>(inputs), layer.fused, values_of<T>(top), sn::values(desc));
            else
                combine(pointers<T>(inputs), values_of<T>(top), sn::values(desc));
        });
    }

    // In place the first bottom's gradient lies where the top's does: it comes last.
    void backward(Layer& layer) override {
        if (operation_ == Operation::sum) {
            for (size_t i = layer.bottoms.size(); i-- > 0;)
                if (layer.propagate[i]) pass_on(layer, i);
            return;
        }
        const auto desc = layout(layer);
        const auto inputs = read(layer, desc);
        for (size_t i = layer.bottoms.size(); i-- > 0;)
            if (layer.propagate[i])
                typed(desc, [&](auto type) {
                    differentiate(layer, desc, pointers<decltype(type)>(inputs), i);
                });
    }

   private:
    enum class Operation { prod, sum, max };

    dnnl::memory::desc layout(const Layer& layer) const {
        std::vector<const Tensor*> tensors;
        for (const Blob* bottom : layer.bottoms) tensors.push_back(&bottom->data);
        return walk(tensors, operation_ != Operation::prod || stable_);
    }

    using Memories = std::vector<dnnl::memory>;
    Memories read(const Layer& layer, const dnnl::memory::desc& desc) const {
        Memories found;
        for (const Blob* bottom : layer.bottoms) found.push_back(bottom->data.read(desc));
        return found;
    }

    template <class T>
    static std::vector<const T*> pointers(const Memories& memories) {
        std::vector<const T*> found;
        for (const auto& memory : memories) found.push_back(values_of<T>(memory));
        return found;
    }

    // The sum, or its ReLU where a fused ReLU follows this layer.
    template <class T>
    void add_up(const std::vector<const T*>& x, bool relu, T* y, int64_t n) const {
        if (relu)
            sn::add_up(x, coefficients_, y, n, [slope = slope_](float sum, int64_t) {
                return sum > 0 ? sum : slope * sum;
            });
        else
            sn::add_up(x, coefficients_, y, n, [](float sum, int64_t) { return sum; });
    }

    // Products and maxima.
    template <class T>
    void combine(const std::vector<const T*>& x, T* y, int64_t n) const {
        const T *const *all = x.data(), *a = x[0], *b = x[1];
        const size_t many = x.size();
        if (operation_ == Operation::prod && many == 2)
            parallel_each(n, [=](int64_t i) { y[i] = a[i] * b[i]; });
        else if (operation_ == Operation::prod)
            parallel_each(n, [=](int64_t i) {
                float product = a[i] * b[i];
                for (size_t k = 2; k < many; ++k) product *= all[k][i];
                y[i] = product;
            });
        else if (many == 2)
            parallel_each(n, [=](int64_t i) {
                const float p = a[i], q = b[i];
                y[i] = p > q ? p : q;
            });
        else
            parallel_each(n, [=](int64_t i) {
                const float most = all[largest(all, many, i)][i];
                y[i] = most;
            });
    }

    template <class T>
    void differentiate(Layer& layer, const dnnl::memory::desc& desc,
                       const std::vector<const T*>& inputs, size_t which) const {
        const auto top = layer.tops[0]->diff.read(desc);
        const auto bottom = layer.bottoms[which]->diff.write(desc);
        const T* dy = values_of<T>(top);
        T* dx = values_of<T>(bottom);
        const int64_t n = sn::values(desc);
        const T* const* x = inputs.data();
        const size_t many = inputs.size();
        if (operation_ == Operation::max) {
            parallel_each(n, [=](int64_t i) {
                dx[i] = largest(x, many, i) == which ? static_cast<float>(dy[i]) : 0.0F;
            });
        } else if (stable_) {
            parallel_each(n, [=](int64_t i) {
                float product = 1;
                for (size_t k = 0; k < many; ++k)
                    if (k != which) product *= x[k][i];
                dx[i] = product * dy[i];
            });
        } else {
            parallel_each(n, [=](int64_t i) {
                float product = x[0][i];
                for (size_t k = 1; k < many; ++k) product *= x[k][i];
                dx[i] = product / x[which][i] * dy[i];
            });
        }
    }

    // A sum passes its gradient unchanged to each of its terms, but for the coefficient.
    void pass_on(Layer& layer, size_t which) const {
        const Tensor& dy = layer.tops[0]->diff;
        const float c = coefficients_[which];
        if (c == 1.0F)
            layer.bottoms[which]->diff.copy(dy);
        else
            map(dy, layer.bottoms[which]->diff, true, [=](float d) { return c * d; });
    }

    // Of equal values the later one counts.
    template <class T>
    static size_t largest(const T* const* x, size_t many, int64_t i) {
        size_t best = x[0][i] > x[1][i] ? 0 : 1;
        for (size_t k = 2; k < many; ++k)
            if (x[k][i] > x[best][i]) best = k;
        return best;
    }

    Operation operation_ = Operation::sum;
    bool stable_ = true;
    float slope_ = 0;
    std::vector<float> coefficients_;
};

// A scale for every channel times x, plus y (SENet: axpy_layer.cpp).
class Axpy final : public BottomKernel {
   public:
    void forward(Layer& layer) override {
        const Channels at = spread(layer);
        const auto first = layer.bottoms[1]->data.read(at.desc);
        const auto second = layer.bottoms[2]->data.read(at.desc);
        const auto top = layer.tops[0]->data.write(at.desc);
        const float *x = floats(first), *y = floats(second);
        float* out = floats(top);
        each_value(at, [=](int64_t i, float a) { out[i] = a * x[i] + y[i]; });
    }

    void backward(Layer& layer) override {
        const Channels at = spread(layer);
        const auto top = layer.tops[0]->diff.read(at.desc);
        const float* dy = floats(top);
        if (layer.propagate[0]) sum(layer, at, dy);
        if (layer.propagate[1]) {
            const auto bottom = layer.bottoms[1]->diff.write(at.desc);
            float* dx = floats(bottom);
            each_value(at, [=](int64_t i, float a) { dx[i] = a * dy[i]; });
        }
        if (layer.propagate[2])
            map(layer.tops[0]->diff, layer.bottoms[2]->diff, true, [](float d) { return d; });
    }

   private:
    // The scales in the order of the layout's rows, zero where it is padded.
    Channels spread(const Layer& layer) {
        const Channels at = channels_of(layer.bottoms[1]->data);
        const float* scale = layer.bottom(0);
        scales_.assign(static_cast<size_t>(at.outer * at.padded()), 0);
        for (int64_t n = 0; n < at.outer; ++n)
            std::copy(scale + n * at.channels, scale + (n + 1) * at.channels,
                      scales_.begin() + n * at.padded());
        return at;
    }

    template <class F>
    void each_value(const Channels& at, F step) const {
        parallel_each(at.rows(), at.row_size(), [&](int64_t row) {
            const float* scale = scales_.data() + row * at.block;
            const int64_t first = row * at.row_size();
            if (at.block == 1) {
                for (int64_t i = 0; i < at.inner; ++i) step(first + i, scale[0]);
                return;
            }
            for (int64_t i = 0; i < at.inner; ++i)
                for (int64_t b = 0; b < at.block; ++b) step(first + i * at.block + b, scale[b]);
        });
    }

    void sum(Layer& layer, const Channels& at, const float* dy) {
        const auto source = layer.bottoms[1]->data.read(at.desc);
        const float* x = floats(source);
        float* out = layer.bottom_diff(0);
        sums_.assign(static_cast<size_t>(at.rows() * at.block), 0);
        parallel_each(at.rows(), at.row_size(), [&](int64_t row) {
            double* total = sums_.data() + row * at.block;
            const int64_t first = row * at.row_size();
            for (int64_t i = 0; i < at.inner; ++i)
                for (int64_t b = 0; b < at.block; ++b) {
                    const int64_t k = first + i * at.block + b;
                    total[b] += static_cast<double>(dy[k] * x[k]);
                }
            float* to = out + row / at.groups * at.channels + row % at.groups * at.block;
            for (int64_t b = 0; b < at.real(row); ++b) to[b] = static_cast<float>(total[b]);
        });
    }

    std::vector<float> scales_;
    std::vector<double> sums_;
};

// One value divided by another.
class Div final : public BottomKernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override { spread_.reshape(layer); }

    void forward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        float* y = layer.top();
        spread_.each_run(layer, [=](int64_t at, int64_t many, const Steps& from, const Steps& by) {
            for (int64_t i = 0; i < many; ++i)
                y[at + i] = a[from[0] + i * by[0]] / b[from[1] + i * by[1]];
        });
    }

    void backward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1), *dy = layer.top_diff();
        if (layer.propagate[0])
            spread_.give(layer, 0,
                         [=](int64_t at, const Steps& from) { return dy[at] / b[from[1]]; });
        if (layer.propagate[1])
            spread_.give(layer, 1, [=](int64_t at, const Steps& from) {
                return -dy[at] * a[from[0]] / (b[from[1]] * b[from[1]]);
            });
    }

   private:
    using Steps = Spread<2>::Steps;
    Spread<2> spread_;
};

// A function of each value: sine, cosine, or the next whole number.
enum class What { floor, ceil, round, trunc, sin, cos };

What what_of(const std::string& name) {
    if (name == "floor") return What::floor;
    if (name == "ceil") return What::ceil;
    if (name == "round") return What::round;
    if (name == "trunc") return What::trunc;
    return name == "sin" ? What::sin : What::cos;
}

struct Math {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 8;
    explicit Math(const Options& options) : what(what_of(options.text("function"))) {}

    Needs needs() const {
        return what == What::sin || what == What::cos ? Needs::input : Needs::nothing;
    }
    float operator()(float x) const {
        switch (what) {
            case What::floor:
                return std::floor(x);
            case What::ceil:
                return std::ceil(x);
            case What::round:
                return std::nearbyint(x);
            case What::trunc:
                return std::trunc(x);
            case What::sin:
                return std::sin(x);
            default:
                return std::cos(x);
        }
    }
    float slope(float x) const {
        if (what == What::sin) return std::cos(x);
        return what == What::cos ? -std::sin(x) : 0.0F;
    }

    What what;
};

// Of two values the first where a condition holds, else the second.
class Where final : public Kernel, public IsAttentionPart<AttentionPart::choice> {
   public:
    bool only_reads() const override { return true; }
    bool looks_back(const Layer&, Role role, size_t i) const override {
        return role == Role::bottom && i == 0;
    }

    void reshape(Layer& layer) override { spread_.reshape(layer); }

    void forward(Layer& layer) override {
        const float *c = layer.bottom(0), *a = layer.bottom(1), *b = layer.bottom(2);
        float* y = layer.top();
        spread_.each_run(layer, [=](int64_t at, int64_t many, const Steps& from, const Steps& by) {
            for (int64_t i = 0; i < many; ++i)
                y[at + i] =
                    c[from[0] + i * by[0]] != 0 ? a[from[1] + i * by[1]] : b[from[2] + i * by[2]];
        });
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 0, "condition");
        const float *c = layer.bottom(0), *dy = layer.top_diff();
        for (size_t side : {1, 2}) {
            if (!layer.propagate[side]) continue;
            const bool first = side == 1;
            spread_.give(layer, side, [=](int64_t at, const Steps& from) {
                return (c[from[0]] != 0) == first ? dy[at] : 0;
            });
        }
    }

   private:
    using Steps = Spread<3>::Steps;
    Spread<3> spread_;
};
}  // namespace

REGISTER_LAYER(Eltwise, Eltwise);
REGISTER_LAYER(Axpy, Axpy);
REGISTER_LAYER(Div, Div);
REGISTER_LAYER(Math, Neuron<Math>);
REGISTER_LAYER(Where, Where);

}  // namespace sn
