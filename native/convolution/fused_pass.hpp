// A pass of the test phase over a convolution with what is fused into it and, perhaps, the
// convolution behind that: what lies between two is never written.
#pragma once

#include <memory>

#include "window.hpp"

namespace sn {

class FusedPass {
   public:
    virtual ~FusedPass() = default;
    // Which loops these are.
    virtual const char* name() const = 0;
    // From the layer's bottom to the top of its last fused layer.
    virtual void run(const Layer& layer) = 0;

    // Whether some loops compute `layer` and `product`, with what is fused into each.
    static bool joins(const Layer& layer, const Layer& product);
    // The loops for a layer with others fused into it, if there are any; `window` is with these.
    static std::unique_ptr<FusedPass> make(const Layer& layer, const Window& window);
};

}  // namespace sn
