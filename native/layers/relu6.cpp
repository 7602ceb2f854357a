// min(max(x, 0), 6); of the MobileNet forks.
#include "neuron.hpp"

namespace sn {

namespace {
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
}  // namespace

std::unique_ptr<Kernel> make_relu6() {
    return make<Neuron<ReLU6>>();
}

}  // namespace sn
