// (shift + scale · x)^power (Caffe: power_layer.cpp).
#include "neuron.hpp"

namespace sn {

namespace {
struct Power {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 4;
    static constexpr auto part = AttentionPart::power;
    explicit Power(const Options& options)
        : power(static_cast<float>(options.real("power"))),
          scale(static_cast<float>(options.real("scale"))),
          shift(static_cast<float>(options.real("shift"))),
          diff_scale(static_cast<float>(options.real("diff_scale"))) {}
    // With power 1 or scale 0 the slope is the same everywhere.
    Needs needs() const {
        return power == 1.0F || diff_scale == 0.0F ? Needs::nothing : Needs::input;
    }
    // Where it only multiplies.
    static std::optional<float> factor(const Options& options) {
        if (options.real("power") != 1 || options.real("shift") != 0) return std::nullopt;
        return static_cast<float>(options.real("scale"));
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
}  // namespace

std::unique_ptr<Kernel> make_power() {
    return make<Neuron<Power>>();
}

}  // namespace sn
