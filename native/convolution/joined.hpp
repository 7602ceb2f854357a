// Two convolutions in one pass: what lies between them is never written.
#pragma once

#include <memory>

#include "window.hpp"

namespace sn {

class Joined {
   public:
    virtual ~Joined() = default;
    // Which loops these are.
    virtual const char* name() const = 0;
    // From the layer's bottom to the last top of the layer's fused_product.
    virtual void run(const Layer& layer) = 0;

    // Whether some loops compute `layer` and `product`, with what is fused into each.
    static bool suits(const Layer& layer, const Layer& product);
    // For a layer and its fused_product; `window` is the layer's.
    static std::unique_ptr<Joined> make(const Layer& layer, const Window& window);
};

}  // namespace sn
