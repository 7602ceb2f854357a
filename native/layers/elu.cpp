// x above zero, alpha (e^x - 1) below (Caffe: elu_layer.cpp).
#include "../engine/exponential.hpp"
#include "neuron.hpp"

namespace sn {

namespace {
struct ELU {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 8;
    explicit ELU(const Options& options) : alpha(static_cast<float>(options.real("alpha"))) {}
    // The output has the input's sign unless alpha reverses it.
    Needs needs() const { return alpha >= 0 ? Needs::output : Needs::input; }
    float operator()(float x) const { return x > 0 ? x : alpha * (fast_exp(x) - 1.0F); }
    float slope(float v) const {
        if (alpha >= 0) return v > 0 ? 1.0F : alpha + v;
        return v > 0 ? 1.0F : alpha * fast_exp(v);
    }

    float alpha;
};
}  // namespace

std::unique_ptr<Kernel> make_elu() {
    return make<Neuron<ELU>>();
}

}  // namespace sn
