// Gradients that pass an in-place ReLU on their way out of the layer behind it: one pass over the
// values instead of two.
#include <algorithm>

#include "net.hpp"

namespace sn {

namespace {
// Layers that read their input and leave it as it is, in a memory of its own.
bool only_reads(const Layer& layer) {
    constexpr const char* known[] = {"Convolution", "InnerProduct", "LRN", "Pooling"};
    const auto is = [&](const char* type) { return layer.type == type; };
    return std::any_of(std::begin(known), std::end(known), is) && !layer.in_place();
}

bool reads(const Layer& layer, const Blob* blob) {
    return std::find(layer.bottoms.begin(), layer.bottoms.end(), blob) != layer.bottoms.end();
}

bool is_gate(const Layer& relu) {
    return relu.type == "ReLU" && relu.backward && relu.propagate[0] && relu.in_place() &&
           relu.loss_weights[0] == 0.0F && relu.options.real("negative_slope", 0) >= 0.0;
}
}  // namespace

// Splits, and poolings whose result stays what it was until the backward pass.
void Net::find_gates() {
    for (Layer& layer : layers) {
        layer.gate = nullptr, layer.gated = false;
        if (layer.index == 0 || narrow() || !layer.backward || layer.tops.empty()) continue;
        const Layer& relu = layers[layer.index - 1];
        if (layer.bottoms.size() != 1 || !layer.propagate[0] || !is_gate(relu) ||
            layer.bottoms[0] != relu.tops[0])
            continue;
        const bool stays = std::all_of(layers.begin(), layers.end(), [&](const Layer& other) {
            return &other == &layer || !reads(other, layer.tops[0]) || only_reads(other);
        });
        if (layer.type == "Split" || (layer.type == "Pooling" && stays)) layer.gate = &relu;
    }
}

// Before the gradients of layers first down to last.
void Net::choose_gates(size_t first, size_t last) {
    for (Layer& layer : layers)
        layer.gated =
            layer.gate && layer.prepared && layer.index <= first && layer.gate->index >= last &&
            layer.kernel->gates(layer) &&
            !(is_fused(*layer.gate, last) && layer.gate->fused_into->kernel->fuses_backward());
}

}  // namespace sn
