// A function of each value: sine, cosine, or the next whole number.
#include "neuron.hpp"

namespace sn {

namespace {
enum class What { floor, ceil, round, trunc, sin, cos };

What what_of(const std::string& name) {
    if (name == "floor") return What::floor;
    if (name == "ceil") return What::ceil;
    if (name == "round") return What::round;
    if (name == "trunc") return What::trunc;
    return name == "sin" ? What::sin : What::cos;
}

struct Math {
    static constexpr auto algorithm = dnnl::algorithm::undef;
    static constexpr int64_t cost = 8;
    explicit Math(const Options& options) : what(what_of(options.text("function"))) {}

    Needs needs() const {
        return what == What::sin || what == What::cos ? Needs::input : Needs::nothing;
    }
    float operator()(float x) const {
        switch (what) {
            case What::floor:
                return std::floor(x);
            case What::ceil:
                return std::ceil(x);
            case What::round:
                return std::nearbyint(x);
            case What::trunc:
                return std::trunc(x);
            case What::sin:
                return std::sin(x);
            default:
                return std::cos(x);
        }
    }
    float slope(float x) const {
        if (what == What::sin) return std::cos(x);
        return what == What::cos ? -std::sin(x) : 0.0F;
    }

    What what;
};
}  // namespace

std::unique_ptr<Kernel> make_math() {
    return make<Neuron<Math>>();
}

}  // namespace sn
