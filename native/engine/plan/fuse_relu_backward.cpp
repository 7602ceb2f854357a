// The layer after an in-place ReLU computes the gradient of the ReLU too: one pass over the
// values instead of two.
#include <algorithm>

#include "../net.hpp"

namespace sn {

namespace {
bool is_gate(const Layer& relu) {
    const auto slope = relu.kernel->relu_slope(relu);
    return slope && *slope >= 0.0F && relu.backward && relu.propagate[0] && relu.in_place() &&
           relu.loss_weights[0] == 0.0F;
}
}  // namespace

// Layers that find the sign in their bottom, or in a top that does not change before the backward
// pass.
void Net::find_gates() {
    for (Layer& layer : layers) {
        layer.gate = nullptr, layer.gated = false;
        if (layer.index == 0 || !layer.backward || layer.tops.empty()) continue;
        const Layer& relu = layers[layer.index - 1];
        if (layer.bottoms.size() != 1 || !layer.propagate[0] || !is_gate(relu) ||
            layer.bottoms[0] != relu.tops[0])
            continue;
        const auto sign = layer.kernel->sign();
        const auto leaves_top = [&](const Layer* other) {
            return other == &layer || (other->kernel->only_reads() && !other->in_place());
        };
        if (sign == Kernel::Sign::in_bottom ||
            (sign == Kernel::Sign::in_top &&
             std::all_of(layer.tops[0]->readers.begin(), layer.tops[0]->readers.end(), leaves_top)))
            layer.gate = &relu;
    }
}

// Called before the gradients of layers first down to last.
void Net::choose_gates(size_t first, size_t last) {
    for (Layer& layer : layers)
        layer.gated =
            layer.gate && layer.prepared && layer.index <= first && layer.gate->index >= last &&
            layer.kernel->gates(layer) &&
            !(is_fused(*layer.gate, last) && layer.gate->fused_into->kernel->fuses_backward());
}

}  // namespace sn
