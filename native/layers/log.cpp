// The logarithm of shift + scale · x (Caffe: log_layer.cpp).
#include "neuron.hpp"

namespace sn {

namespace {
struct Log {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 8;
    explicit Log(const Options& options)
        : scale(static_cast<float>(options.real("scale"))),
          shift(static_cast<float>(options.real("shift"))),
          base_scale(static_cast<float>(options.real("base_scale"))),
          diff_scale(static_cast<float>(options.real("diff_scale"))) {}
    Needs needs() const { return Needs::input; }
    float operator()(float x) const { return std::log(scale * x + shift) * base_scale; }
    float slope(float x) const { return diff_scale / (scale * x + shift); }

    float scale, shift, base_scale, diff_scale;
};
}  // namespace

std::unique_ptr<Kernel> make_log() {
    return make<Neuron<Log>>();
}

}  // namespace sn
