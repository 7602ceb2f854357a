#include "fused_pass.hpp"

#include "expanded.hpp"
#include "expanded_narrow.hpp"
#include "grouped.hpp"
#include "separable.hpp"

namespace sn {

bool FusedPass::joins(const Layer& layer, const Layer& product) {
    return Separable::suits(layer, product) || Expanded::suits(layer, product) ||
           ExpandedNarrow::suits(layer, product);
}

std::unique_ptr<FusedPass> FusedPass::make(const Layer& layer, const Window& window) {
    if (!layer.fused_product)
        return Grouped::suits(layer, window) ? std::make_unique<Grouped>(layer, window) : nullptr;
    if (Separable::suits(layer, *layer.fused_product))
        return std::make_unique<Separable>(layer, window);
    if (Expanded::suits(layer, *layer.fused_product))
        return std::make_unique<Expanded>(layer, window);
    return std::make_unique<ExpandedNarrow>(layer, window);
}

}  // namespace sn
