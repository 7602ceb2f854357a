// |x|; at zero the slope is zero (Caffe: absval_layer.cpp).
#include "neuron.hpp"

namespace sn {

namespace {
struct AbsVal {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 1;
    static constexpr auto part = AttentionPart::size;
    explicit AbsVal(const Options&) {}
    Needs needs() const { return Needs::input; }
    float operator()(float x) const { return std::fabs(x); }
    float slope(float x) const { return x > 0 ? 1.0F : (x < 0 ? -1.0F : 0.0F); }
};
}  // namespace

std::unique_ptr<Kernel> make_absval() {
    return make<Neuron<AbsVal>>();
}

}  // namespace sn
