// outer_scale · e^(inner_scale · x) (Caffe: exp_layer.cpp).
#include "../engine/exponential.hpp"
#include "neuron.hpp"

namespace sn {

namespace {
struct Exp {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 8;
    explicit Exp(const Options& options)
        : inner(static_cast<float>(options.real("inner_scale"))),
          outer(static_cast<float>(options.real("outer_scale"))) {}
    Needs needs() const { return Needs::output; }
    float operator()(float x) const { return fast_exp(inner * x) * outer; }
    float slope(float y) const { return y * inner; }

    float inner, outer;
};
}  // namespace

std::unique_ptr<Kernel> make_exp() {
    return make<Neuron<Exp>>();
}

}  // namespace sn
