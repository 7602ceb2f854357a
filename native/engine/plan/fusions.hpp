// The conditions for computing two consecutive layers at once.
#pragma once

#include "../net.hpp"

namespace sn {

// Whether a layer is the only reader of the layer before it, and makes one blob of that.
inline bool continues(const Layer& before, const Layer& layer) {
    return layer.bottoms.size() == 1 && layer.tops.size() == 1 && before.tops.size() == 1 &&
           layer.bottoms[0] == before.tops[0] && layer.loss_weights[0] == 0.0F;
}

inline void join(Layer& head, Layer& member) {
    member.fused_into = &head;
    head.fused_last = &member;
}

}  // namespace sn
