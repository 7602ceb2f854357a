// The hyperbolic tangent (Caffe: tanh_layer.cpp).
#include "neuron.hpp"

namespace sn {

namespace {
struct TanH {
    static constexpr auto algorithm = dnnl::algorithm::eltwise_tanh;
    static constexpr int64_t cost = 1;
    explicit TanH(const Options&) {}
    Needs needs() const { return Needs::output; }
    float slope(float y) const { return 1.0F - y * y; }
};
}  // namespace

std::unique_ptr<Kernel> make_tanh() {
    return make<Neuron<TanH>>();
}

}  // namespace sn
