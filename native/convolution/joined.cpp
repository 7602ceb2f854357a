#include "joined.hpp"

#include "expanded.hpp"
#include "separable.hpp"

namespace sn {

bool Joined::suits(const Layer& layer, const Layer& product) {
    return Separable::suits(layer, product) || Expanded::suits(layer, product);
}

std::unique_ptr<Joined> Joined::make(const Layer& layer, const Window& window) {
    if (Separable::suits(layer, *layer.fused_product))
        return std::make_unique<Separable>(layer, window);
    return std::make_unique<Expanded>(layer, window);
}

}  // namespace sn
