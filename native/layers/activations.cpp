// Functions of each value: rectifiers, squashing functions, powers and logarithms.
#include "../engine/activation.hpp"
#include "../engine/elementwise.hpp"
#include "../engine/exponential.hpp"
#include "../engine/layer.hpp"
#include "../engine/plan/attention_part.hpp"
#include "neuron.hpp"
#include "no_gradient.hpp"

namespace sn {

namespace {
// |x|; at zero the slope is zero (Caffe: absval_layer.cpp).
struct AbsVal {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 1;
    static constexpr auto part = AttentionPart::size;
    explicit AbsVal(const Options&) {}
    Needs needs() const { return Needs::input; }
    float operator()(float x) const { return std::fabs(x); }
    float slope(float x) const { return x > 0 ? 1.0F : (x < 0 ? -1.0F : 0.0F); }
};

// log(1 + e^x) (Caffe: bnll_layer.cpp).
struct BNLL {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 20;
    explicit BNLL(const Options&) {}
    Needs needs() const { return Needs::output; }
    float operator()(float x) const {
        return x > 0 ? x + std::log1p(fast_exp(-x)) : std::log1p(fast_exp(x));
    }
    // 1 - e^-y is e^x / (1 + e^x), in place too.
    float slope(float y) const { return -std::expm1(-y); }
};

// Values held between two bounds (Caffe: clip_layer.cpp).
struct Clip {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 1;
    explicit Clip(const Options& options)
        : least(options.real32("min")), most(options.real32("max")) {}
    Needs needs() const { return Needs::input; }
    static std::optional<Ending> ending(const Options& options) {
        const Clip made(options);
        if (made.least > made.most) return std::nullopt;
        return Ending{dnnl::algorithm::eltwise_clip_v2, made.least, made.most};
    }
    float operator()(float x) const {
        const float below = x > most ? most : x;
        return below < least ? least : below;
    }
    float slope(float x) const { return x >= least && x <= most ? 1.0F : 0.0F; }

    float least, most;
};

// x above zero, alpha (e^x - 1) below (Caffe: elu_layer.cpp).
struct ELU {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 8;
    explicit ELU(const Options& options) : alpha(options.real32("alpha")) {}
    // The output has the input's sign unless alpha reverses it.
    Needs needs() const { return alpha >= 0 ? Needs::output : Needs::input; }
    float operator()(float x) const { return x > 0 ? x : alpha * (fast_exp(x) - 1.0F); }
    float slope(float v) const {
        if (alpha >= 0) return v > 0 ? 1.0F : alpha + v;
        return v > 0 ? 1.0F : alpha * fast_exp(v);
    }

    float alpha;
};

// outer_scale · e^(inner_scale · x) (Caffe: exp_layer.cpp).
struct Exp {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 8;
    explicit Exp(const Options& options)
        : inner(options.real32("inner_scale")), outer(options.real32("outer_scale")) {}
    Needs needs() const { return Needs::output; }
    float operator()(float x) const { return fast_exp(inner * x) * outer; }
    float slope(float y) const { return y * inner; }

    float inner, outer;
};

// x · Φ(x), Φ being the normal distribution (Hendrycks and Gimpel, 2016), or its form with tanh.
class GELU final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        by_tanh_ = layer.options.text("approximate") == "tanh";
        activation_.reset();
    }

    std::optional<Ending> ending(const Layer& layer) const override {
        return Ending{layer.options.text("approximate") == "tanh"
                          ? dnnl::algorithm::eltwise_gelu_tanh
                          : dnnl::algorithm::eltwise_gelu_erf};
    }

    void forward(Layer& layer) override {
        activation_.run(ending(layer)->algorithm, layer.bottoms[0]->data, layer.tops[0]->data);
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const bool by_tanh = by_tanh_;
        map(
            layer.tops[0]->diff, layer.bottoms[0]->data, layer.bottoms[0]->diff, true,
            [=](float d, float x) { return d * (by_tanh ? tanh_slope(x) : erf_slope(x)); }, 64);
    }

   private:
    static float erf_slope(float x) {
        constexpr float root_half = 0.70710678F, density = 0.39894228F;
        return 0.5F * (1.0F + std::erf(x * root_half)) + x * density * std::exp(-0.5F * x * x);
    }

    static float tanh_slope(float x) {
        constexpr float outer = 0.79788456F, cubic = 0.044715F;
        const float t = std::tanh(outer * (x + cubic * x * x * x));
        return 0.5F * (1.0F + t) +
               0.5F * x * (1.0F - t * t) * outer * (1.0F + 3.0F * cubic * x * x);
    }

    bool by_tanh_ = false;
    Activation activation_;
};

// x · min(1, max(0, x / 6 + 1/2)) (Howard et al., 2019).
struct HardSwish {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 2;
    static constexpr float steep = 1.0F / 6, half = 0.5F;
    explicit HardSwish(const Options&) {}
    Needs needs() const { return Needs::input; }
    static std::optional<Ending> ending(const Options&) {
        return Ending{dnnl::algorithm::eltwise_hardswish, steep, half};
    }
    float operator()(float x) const {
        const float gate = steep * x + half;
        return x * (gate < 0 ? 0.0F : (gate > 1 ? 1.0F : gate));
    }
    float slope(float x) const {
        if (x <= -3) return 0;
        return x < 3 ? 2 * steep * x + half : 1.0F;
    }
};

// The logarithm of shift + scale · x (Caffe: log_layer.cpp).
struct Log {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 8;
    explicit Log(const Options& options)
        : scale(options.real32("scale")),
          shift(options.real32("shift")),
          base_scale(options.real32("base_scale")),
          diff_scale(options.real32("diff_scale")) {}
    Needs needs() const { return Needs::input; }
    float operator()(float x) const { return std::log(scale * x + shift) * base_scale; }
    float slope(float x) const { return diff_scale / (scale * x + shift); }

    float scale, shift, base_scale, diff_scale;
};

// x · tanh(log(1 + exp x)) (Misra, 2019).
class Mish final : public BottomKernel {
   public:
    void reshape(Layer&) override { activation_.reset(); }

    void forward(Layer& layer) override {
        activation_.run(dnnl::algorithm::eltwise_mish, layer.bottoms[0]->data, layer.tops[0]->data);
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        map(
            layer.tops[0]->diff, layer.bottoms[0]->data, layer.bottoms[0]->diff, true,
            [](float d, float x) {
                const float soft = std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x)));
                const float t = std::tanh(soft);
                return d * (t + x * (1.0F - t * t) / (1.0F + std::exp(-x)));
            },
            64);
    }

   private:
    Activation activation_;
};

// (shift + scale · x)^power (Caffe: power_layer.cpp).
struct Power {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 4;
    static constexpr auto part = AttentionPart::power;
    explicit Power(const Options& options)
        : power(options.real32("power")),
          scale(options.real32("scale")),
          shift(options.real32("shift")),
          diff_scale(options.real32("diff_scale")) {}
    // With power 1 or scale 0 the slope is the same everywhere.
    Needs needs() const {
        return power == 1.0F || diff_scale == 0.0F ? Needs::nothing : Needs::input;
    }
    // Where it only multiplies.
    static std::optional<float> factor(const Options& options) {
        if (options.real("power") != 1 || options.real("shift") != 0) return std::nullopt;
        return options.real32("scale");
    }
    // Where no value is raised: a factor of zero would make one number of all others, too.
    static std::optional<std::pair<float, float>> line(const Options& options) {
        const Power made(options);
        if (made.power != 1.0F || made.scale == 0.0F) return std::nullopt;
        return std::make_pair(made.scale, made.shift);
    }
    float operator()(float x) const {
        if (diff_scale == 0.0F) return raise(shift, power);
        return raise(shift + scale * x, power);
    }
    float slope(float x) const {
        if (needs() == Needs::nothing) return diff_scale;
        return diff_scale * raise(shift + scale * x, power - 1);
    }

    static float raise(float base, float exponent) {
        if (exponent == 0.0F) return 1.0F;
        if (exponent == 1.0F) return base;
        if (exponent == 2.0F) return base * base;
        if (exponent == -1.0F) return 1.0F / base;
        return std::pow(base, exponent);
    }

    float power, scale, shift, diff_scale;
};

// max(x, 0), or with a slope below zero (Caffe: relu_layer.cpp).
class ReLU final : public Kernel {
   public:
    void reshape(Layer& layer) override { slope_ = layer.options.real32("negative_slope"); }
    void forward(Layer& layer) override {
        const float slope = slope_;
        const Tensor& x = layer.bottoms[0]->data;
        if (slope == 0)  // NaN stays
            return map(x, layer.tops[0]->data, true, [](float v) { return v <= 0 ? 0.0F : v; });
        map(x, layer.tops[0]->data, true, [=](float v) { return v > 0 ? v : slope * v; });
    }
    // Unless the slope is negative, the sign of the result is the input's.
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float slope = slope_;
        map(layer.tops[0]->diff, layer.bottoms[0]->data, layer.bottoms[0]->diff, true,
            [=](float dy, float x) { return dy * (x > 0 ? 1.0F : slope); });
    }
    std::optional<float> relu_slope(const Layer& layer) const override {
        return static_cast<float>(layer.options.real("negative_slope", 0));
    }
    bool looks_back(const Layer& layer, Role role, size_t) const override {
        return role == (layer.in_place() && slope_ >= 0 ? Role::top : Role::bottom);
    }
    bool leaves_signs(const Layer&) const override { return slope_ >= 0; }

   private:
    float slope_ = 0;
};

// min(max(x, 0), 6); of the MobileNet forks.
struct ReLU6 {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 1;
    explicit ReLU6(const Options&) {}
    Needs needs() const { return Needs::output; }
    static std::optional<Ending> ending(const Options&) {
        return Ending{dnnl::algorithm::eltwise_clip_v2, 0, 6};
    }
    float operator()(float x) const { return x < 0 ? 0.0F : (x > 6 ? 6.0F : x); }
    float slope(float y) const { return y > 0 && y < 6 ? 1.0F : 0.0F; }
};

// 1 / (1 + e^-x) (Caffe: sigmoid_layer.cpp).
struct Sigmoid {
    static constexpr auto algorithm = dnnl::algorithm::eltwise_logistic;
    static constexpr int64_t cost = 1;
    explicit Sigmoid(const Options&) {}
    Needs needs() const { return Needs::output; }
    float slope(float y) const { return y * (1.0F - y); }
};

// x · sigmoid(beta · x) (Caffe: swish_layer.cpp).
class Swish final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        beta_ = layer.options.real32("beta");
        sigmoid_.reshape(layer.shape());
        activation_.reset();
    }

    std::optional<Ending> ending(const Layer& layer) const override {
        return Ending{dnnl::algorithm::eltwise_swish, layer.options.real32("beta")};
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::top; }

    void forward(Layer& layer) override {
        const float beta = beta_;
        const Tensor& x = layer.bottoms[0]->data;
        Tensor& y = layer.tops[0]->data;
        if (!layer.has_gradients())
            return activation_.run(dnnl::algorithm::eltwise_swish, x, y, beta);
        map(x, sigmoid_, true, [=](float v) { return beta * v; });
        activation_.run(dnnl::algorithm::eltwise_logistic, sigmoid_, sigmoid_);
        map(x, sigmoid_, y, true, [](float v, float s) { return v * s; });
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float beta = beta_;
        map(layer.tops[0]->diff, layer.tops[0]->data, sigmoid_, layer.bottoms[0]->diff, true,
            [=](float dy, float y, float s) {
                const float scaled = beta * y;
                return dy * (scaled + s * (1.0F - scaled));
            });
    }

   private:
    float beta_ = 1;
    Tensor sigmoid_;
    Activation activation_;
};

// The hyperbolic tangent (Caffe: tanh_layer.cpp).
struct TanH {
    static constexpr auto algorithm = dnnl::algorithm::eltwise_tanh;
    static constexpr int64_t cost = 1;
    explicit TanH(const Options&) {}
    Needs needs() const { return Needs::output; }
    float slope(float y) const { return 1.0F - y * y; }
};

// One above a bound, else zero (Caffe: threshold_layer.cpp).
class Threshold final : public Kernel, public IsAttentionPart<AttentionPart::bound> {
   public:
    void forward(Layer& layer) override {
        const auto bound = layer.options.real32("threshold");
        map(layer.bottoms[0]->data, layer.tops[0]->data, !(0 > bound),
            [=](float x) { return x > bound ? 1.0F : 0.0F; });
    }
    void backward(Layer& layer) override { refuse_backward(layer); }
};
}  // namespace

REGISTER_LAYER(AbsVal, Neuron<AbsVal>);
REGISTER_LAYER(BNLL, Neuron<BNLL>);
REGISTER_LAYER(Clip, Neuron<Clip>);
REGISTER_LAYER(ELU, Neuron<ELU>);
REGISTER_LAYER(Exp, Neuron<Exp>);
REGISTER_LAYER(GELU, GELU);
REGISTER_LAYER(HardSwish, Neuron<HardSwish>);
REGISTER_LAYER(Log, Neuron<Log>);
REGISTER_LAYER(Mish, Mish);
REGISTER_LAYER(Power, Neuron<Power>);
REGISTER_LAYER(ReLU, ReLU);
REGISTER_LAYER(ReLU6, Neuron<ReLU6>);
REGISTER_LAYER(Sigmoid, Neuron<Sigmoid>);
REGISTER_LAYER(Swish, Swish);
REGISTER_LAYER(TanH, Neuron<TanH>);
REGISTER_LAYER(Threshold, Threshold);

}  // namespace sn
