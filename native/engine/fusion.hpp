// Which layers may be computed at once: what fusion.cpp and chain.cpp ask of two in a row.
#pragma once

#include "net.hpp"

namespace sn {

// Whether a layer reads what the one before it made, alone, and makes one blob of it.
inline bool continues(const Layer& before, const Layer& layer) {
    return layer.bottoms.size() == 1 && layer.tops.size() == 1 && before.tops.size() == 1 &&
           layer.bottoms[0] == before.tops[0] && layer.loss_weights[0] == 0.0F;
}

// Scale and Bias with one number a channel.
inline bool by_channel(const Layer& layer) {
    return layer.options.integer("axis") == 1 && layer.options.integer("num_axes") == 1;
}

inline void join(Layer& head, Layer& member) {
    member.fused_into = &head;
    head.fused_last = &member;
}

}  // namespace sn
