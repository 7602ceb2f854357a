// 1 / (1 + e^-x) (Caffe: sigmoid_layer.cpp).
#include "neuron.hpp"

namespace sn {

namespace {
struct Sigmoid {
    static constexpr auto algorithm = dnnl::algorithm::eltwise_logistic;
    static constexpr int64_t cost = 1;
    explicit Sigmoid(const Options&) {}
    Needs needs() const { return Needs::output; }
    float slope(float y) const { return y * (1.0F - y); }
};
}  // namespace

std::unique_ptr<Kernel> make_sigmoid() {
    return make<Neuron<Sigmoid>>();
}

}  // namespace sn
