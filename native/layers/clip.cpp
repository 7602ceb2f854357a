// Values held between two bounds (Caffe: clip_layer.cpp).
#include "neuron.hpp"

namespace sn {

namespace {
struct Clip {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 1;
    explicit Clip(const Options& options)
        : least(static_cast<float>(options.real("min"))),
          most(static_cast<float>(options.real("max"))) {}
    Needs needs() const { return Needs::input; }
    static std::optional<Ending> ending(const Options& options) {
        const Clip made(options);
        if (made.least > made.most) return std::nullopt;
        return Ending{dnnl::algorithm::eltwise_clip_v2, made.least, made.most};
    }
    float operator()(float x) const {
        const float below = x > most ? most : x;
        return below < least ? least : below;
    }
    float slope(float x) const { return x >= least && x <= most ? 1.0F : 0.0F; }

    float least, most;
};
}  // namespace

std::unique_ptr<Kernel> make_clip() {
    return make<Neuron<Clip>>();
}

}  // namespace sn
