// Layers that map each value to one value (Caffe: neuron_layer.hpp).
#pragma once

#include <cmath>
#include <optional>
#include <utility>

#include "../engine/activation.hpp"
#include "../engine/affine.hpp"
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"
#include "../engine/plan/attention_part.hpp"

namespace sn {

// The values from which the slope of a function is computed.
enum class Needs { nothing, input, output };

// oneDNN's function, or what a function's own `ending` says.
template <class Function>
auto ending_of(const Options& options, int) -> decltype(Function::ending(options)) {
    return Function::ending(options);
}
template <class Function>
std::optional<Ending> ending_of(const Options&, long) {
    if constexpr (Function::algorithm == dnnl::algorithm::undef) return std::nullopt;
    return Ending{Function::algorithm};
}

// The number by which a function multiplies, if it does nothing else.
template <class Function>
auto factor_of(const Options& options, int) -> decltype(Function::factor(options)) {
    return Function::factor(options);
}
template <class Function>
std::optional<float> factor_of(const Options&, long) {
    return std::nullopt;
}

// Whether a function multiplies all values by one number and adds another, and these.
template <class Function>
auto line_of(const Options& options, int) -> decltype(Function::line(options)) {
    return Function::line(options);
}
template <class Function>
std::optional<std::pair<float, float>> line_of(const Options&, long) {
    return std::nullopt;
}

// What a function may be in an attention, if it says so.
template <class Function, class = void>
struct NeuronPart {};
template <class Function>
struct NeuronPart<Function, std::void_t<decltype(Function::part)>>
    : IsAttentionPart<Function::part> {};

// Function: made from Options; operator()(x) is the value; needs() and slope(v) its derivative,
// from the input or the output; `algorithm` names oneDNN's own, where that is exact enough.
template <class Function>
class Neuron final : public Kernel, public NeuronPart<Function> {
   public:
    void reshape(Layer& layer) override {
        function_.emplace(layer.options);
        activation_.reset();
    }

    std::optional<Ending> ending(const Layer& layer) const override {
        return ending_of<Function>(layer.options, 0);
    }

    bool is_affine(const Layer& layer) const override {
        return line_of<Function>(layer.options, 0).has_value();
    }
    void fold_into(Affine& before, const Layer& layer) const override {
        const auto [factor, shift] = *line_of<Function>(layer.options, 0);
        before.then([by = factor](size_t) { return by; }, [more = shift](size_t) { return more; });
    }

    std::optional<Strided> moves(const Layer& layer, const Blob& top) const override {
        auto made = as_they_are(top.count());
        const auto factor = factor_of<Function>(layer.options, 0);
        if (!factor) return std::nullopt;
        made.factor = *factor;
        return made;
    }

    void forward(Layer& layer) override {
        const Function f = *function_;
        const Tensor& x = layer.bottoms[0]->data;
        Tensor& y = layer.tops[0]->data;
        if constexpr (Function::algorithm == dnnl::algorithm::undef)
            map(x, y, f(0.0F) == 0.0F, [=](float v) { return f(v); }, Function::cost);
        else
            activation_.run(Function::algorithm, x, y);
    }

    bool looks_back(const Layer&, Role role, size_t) const override {
        return function_->needs() == (role == Role::bottom ? Needs::input : Needs::output);
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const Function f = *function_;
        const Tensor& dy = layer.tops[0]->diff;
        Tensor& dx = layer.bottoms[0]->diff;
        if (f.needs() == Needs::nothing) {
            const float slope = f.slope(0.0F);
            map(dy, dx, true, [=](float d) { return d * slope; });
            return;
        }
        const bool input = f.needs() == Needs::input;
        const Tensor& v = input ? layer.bottoms[0]->data : layer.tops[0]->data;
        const bool finite = std::isfinite(f.slope(0.0F));
        map(dy, v, dx, finite, [=](float d, float at) { return d * f.slope(at); }, Function::cost);
    }

   private:
    std::optional<Function> function_;
    Activation activation_;
};

}  // namespace sn
