// Values that the backward pass needs after another layer, or this one, has overwritten them.
#pragma once

#include "elementwise.hpp"
#include "net.hpp"

namespace sn {

// Whether a later layer works in place on this layer's top.
inline bool overwritten(const Layer& layer, size_t top = 0) {
    const Tensor& data = layer.tops[top]->data;
    for (size_t i = layer.index + 1; i < layer.net->layers.size(); ++i) {
        const Layer& later = layer.net->layers[i];
        for (const Blob* blob : later.tops)
            if (blob->data.shares(data))
                for (const Blob* bottom : later.bottoms)
                    if (bottom == blob) return true;
    }
    return false;
}

class Saved {
   public:
    // Copies the values if they will be gone when `of` asks for them.
    void keep(const Tensor& values, bool needed) {
        held_ = needed;
        if (!needed) return;
        copy_.copy(values);
    }
    // Values saved for other shapes are dropped.
    const Tensor& of(const Tensor& values) const {
        return held_ && copy_.shape() == values.shape() ? copy_ : values;
    }
    void forget() { copy_.storage().give_back(); }

   private:
    Tensor copy_;
    bool held_ = false;
};

}  // namespace sn
