// log(1 + e^x) (Caffe: bnll_layer.cpp).
#include "../engine/exponential.hpp"
#include "neuron.hpp"

namespace sn {

namespace {
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
}  // namespace

std::unique_ptr<Kernel> make_bnll() {
    return make<Neuron<BNLL>>();
}

}  // namespace sn
