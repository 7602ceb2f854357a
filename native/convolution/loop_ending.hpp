// What loops of our own compute at the end of a pass: a function of each value.
#pragma once

#include <limits>
#include <optional>

#include "../engine/layer.hpp"

namespace sn {

struct LoopEnding {
    // between: at least alpha and at most beta; swish: x / (1 + e^(-alpha x)); hard_swish:
    // x (alpha x + beta), the factor between 0 and 1.
    enum class Kind { none, between, swish, hard_swish };
    Kind kind = Kind::none;
    float alpha = 0, beta = 0;

    // What a pass has at its end; nothing if the loops do not know it.
    static std::optional<LoopEnding> of(bool relu, const std::optional<Ending>& ending) {
        constexpr float most = std::numeric_limits<float>::infinity();
        if (relu) return LoopEnding{Kind::between, 0, most};
        if (!ending) return LoopEnding{};
        switch (ending->algorithm) {
            case dnnl::algorithm::eltwise_swish:
                return LoopEnding{Kind::swish, ending->alpha, 0};
            case dnnl::algorithm::eltwise_hardswish:
                return LoopEnding{Kind::hard_swish, ending->alpha, ending->beta};
            case dnnl::algorithm::eltwise_clip_v2:
                return LoopEnding{Kind::between, ending->alpha, ending->beta};
            default:
                return std::nullopt;
        }
    }
};

}  // namespace sn
