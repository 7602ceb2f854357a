// Which blobs are stored in bfloat16: those whose readers round them to that in any case, directly
// or behind layers that only move values.  The results are the same, in half of the memory, but for
// the queries of an attention, which are rounded once more before its scale multiplies them.
#include <algorithm>
#include <map>

#include "../net.hpp"

namespace sn {

// From the last layer to the first, so that layers that move values know of their tops.
void Net::find_rounded() {
    for (Blob& blob : blobs) blob.rounded = false;
    if (keeps_blobs) return;
    std::map<const Blob*, std::vector<const Layer*>> readers;
    for (const Layer& layer : layers) {
        if (layer.attention)
            layer.attention->each_source(
                [&](const auto& source) { readers[source.blob].push_back(&layer); });
        if (!layer.fused_into)
            for (const Blob* bottom : layer.bottoms) readers[bottom].push_back(&layer);
        if (layer.fused_other) readers[layer.fused_other].push_back(&layer);
    }
    for (size_t i = layers.size(); i-- > 0;)
        for (Blob* top : layers[i].tops) {
            const auto& found = readers[top];
            top->rounded = !top->wanted && !layers[i].has_gradients() && !found.empty() &&
                           std::all_of(found.begin(), found.end(), [&](const Layer* one) {
                               return one->kernel->rounds(*one, *top);
                           });
        }
}

}  // namespace sn
