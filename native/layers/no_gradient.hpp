// Refusals of a gradient that a layer does not have.
#pragma once

#include "../engine/layer.hpp"

namespace sn {

// A backward pass that reaches a layer without one (Caffe: NOT_IMPLEMENTED).
inline void refuse_backward(const Layer& layer) {
    for (size_t i = 0; i < layer.propagate.size(); ++i)
        if (layer.propagate[i])
            layer.refuse("has no gradient, but one is asked for bottom '" + layer.bottoms[i]->name +
                         "'; leave force_backward out, or set propagate_down: false");
}

// A loss that was asked for the gradient of its labels, or the like.
inline void refuse_gradient_of(const Layer& layer, size_t bottom, const std::string& what) {
    if (bottom < layer.propagate.size() && layer.propagate[bottom])
        layer.refuse("has no gradient for the " + what + ", bottom '" +
                     layer.bottoms[bottom]->name +
                     "'; leave force_backward out, or set propagate_down: false for it");
}

}  // namespace sn
