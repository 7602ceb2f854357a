// x · min(1, max(0, x / 6 + 1/2)) (Howard et al., 2019).
#include "neuron.hpp"

namespace sn {

namespace {
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
}  // namespace

std::unique_ptr<Kernel> make_hard_swish() {
    return make<Neuron<HardSwish>>();
}

}  // namespace sn
