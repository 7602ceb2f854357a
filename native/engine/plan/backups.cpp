// Which values a backward pass reads after a layer in place has overwritten them.  A copy shares
// its pages with the blob until that is written.
#include "backups.hpp"

#include <algorithm>
#include <map>

#include "../net.hpp"

namespace sn {

namespace {
bool has(const Blobs& blobs, const Blob* blob) {
    return std::find(blobs.begin(), blobs.end(), blob) != blobs.end();
}

// By what they overwrite: the layers that work in place, or on a view of such a blob.
using Writers = std::map<const Storage*, std::vector<const Layer*>>;

// A ReLU reads signs alone.
bool is_overwritten(const Writers& writers, const Layer& layer, const Blob& blob) {
    const auto found = writers.find(&blob.data.storage());
    if (found == writers.end()) return false;
    const bool only_signs = layer.kernel->relu_slope(layer).has_value();
    return std::any_of(found->second.begin(), found->second.end(), [&](const Layer* writer) {
        return writer->index > layer.index &&
               !(only_signs && writer->prepared && writer->kernel->leaves_signs(*writer));
    });
}
}  // namespace

void Net::find_backups() {
    Writers writers;
    for (const Layer& layer : layers)
        for (const Blob* top : layer.tops)
            if (has(layer.bottoms, top)) writers[&top->data.storage()].push_back(&layer);
    for (Layer& layer : layers) {
        const auto before = std::move(layer.backups);
        layer.backups.clear();
        if (!layer.backward || !layer.prepared || !(train || keeps_blobs)) continue;
        const auto add = [&](Blob* blob, bool is_input) {
            const auto same = std::find_if(before.begin(), before.end(), [&](const Backup& one) {
                return one.blob == blob && one.is_input == is_input;
            });
            layer.backups.push_back(same == before.end() ? Backup{blob, is_input} : *same);
        };
        for (size_t t = 0; t < layer.tops.size(); ++t)
            if (layer.kernel->looks_back(layer, Kernel::Role::top, t) &&
                is_overwritten(writers, layer, *layer.tops[t]))
                add(layer.tops[t], false);
        for (size_t i = 0; i < layer.bottoms.size(); ++i) {
            Blob* bottom = layer.bottoms[i];
            // Layers that a convolution computes may have to run one by one (fusions.cpp).
            if (!layer.kernel->looks_back(layer, Kernel::Role::bottom, i) &&
                layer.fused_affine.empty())
                continue;
            if (has(layer.tops, bottom) ? layer.find_backup(*bottom) == nullptr
                                        : is_overwritten(writers, layer, *bottom))
                add(bottom, true);
        }
    }
}

void Net::take_backups(Layer& layer, bool inputs) {
    for (Backup& backup : layer.backups) {
        if (backup.is_input != inputs) continue;
        backup.values.copy(backup.blob->data);
        backup.is_taken = true;
    }
}

void Net::run_forward(Layer& layer) {
    take_backups(layer, true);
    layer.kernel->forward(layer);
    if (!layer.waits) take_backups(layer.fused ? *layer.fused_last : layer, false);
}

}  // namespace sn
