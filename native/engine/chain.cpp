// What a convolution computes too in the test phase: BatchNorm, Scale and Bias become a part of its
// weights, the sum with another blob and the ReLU a part of its pass.
#include <algorithm>

#include "fusion.hpp"

namespace sn {

namespace {
bool is_convolution(const Layer& layer) {
    return (layer.type == "Convolution" || layer.type == "DepthwiseConvolution") &&
           layer.tops.size() == 1 && layer.options.integer("axis") == 1;
}

bool is_affine(const Layer& layer) {
    if (layer.type == "BatchNorm") return layer.options.flag("use_global_stats");
    return (layer.type == "Scale" || layer.type == "Bias") && by_channel(layer);
}

bool is_relu(const Layer& layer) {
    return layer.type == "ReLU" && layer.options.real("negative_slope", 0) == 0;
}

// The sum of two blobs as they are.
bool is_sum(const Layer& layer) {
    if (layer.type != "Eltwise" || layer.options.text("operation") != "sum") return false;
    const auto factors = layer.options.reals("coeff");
    return layer.bottoms.size() == 2 && layer.tops.size() == 1 && layer.loss_weights[0] == 0.0F &&
           std::all_of(factors.begin(), factors.end(), [](double factor) { return factor == 1; });
}
}  // namespace

// Nobody would see it if a blob between two layers of a chain were never written.
bool Net::is_hidden(const Blob& blob) const {
    if (keeps_blobs || blob.wanted) return false;
    long readers = 0;
    for (const Layer& layer : layers) {
        const bool overwrites = std::count(layer.tops.begin(), layer.tops.end(), &blob) > 0;
        const long reads = std::count(layer.bottoms.begin(), layer.bottoms.end(), &blob);
        if (!overwrites) readers += reads;
    }
    return readers == 1;
}

bool Net::goes_on(const Layer& before, const Layer& layer) const {
    return continues(before, layer) && (layer.in_place() || is_hidden(*before.tops[0]));
}

// The other blob of a sum: it is there before the convolution runs.
bool Net::can_add(const Layer& head, const Layer& before, const Layer& sum) const {
    if (narrow() || before.tops.size() != 1 || !is_sum(sum)) return false;
    const Blob *own = before.tops[0], *top = sum.tops[0];
    if (!is_hidden(*own) || sum.bottoms[0] == sum.bottoms[1]) return false;
    if (top == sum.bottoms[0] || top == sum.bottoms[1]) return false;
    if (sum.bottoms[0] != own && sum.bottoms[1] != own) return false;
    const Blob* other = sum.bottoms[sum.bottoms[0] == own ? 1 : 0];
    for (size_t i = head.index; i < sum.index; ++i)
        if (std::count(layers[i].tops.begin(), layers[i].tops.end(), other)) return false;
    return other->shape() == own->shape();
}

void Net::find_chain(Layer& head) {
    if (!is_convolution(head)) return;
    Layer* last = &head;
    Layer* layer = next(head);
    const auto take = [&] {
        join(head, *layer);
        last = layer;
        layer = next(*layer);
    };
    while (layer && is_affine(*layer) && goes_on(*last, *layer)) {
        head.fused_affine.push_back(layer);
        take();
    }
    if (layer && can_add(head, *last, *layer)) {
        head.fused_sum = layer;
        head.fused_other = layer->bottoms[layer->bottoms[0] == last->tops[0] ? 1 : 0];
        take();
    }
    if (layer && is_relu(*layer) && goes_on(*last, *layer)) {
        head.fused_relu = layer;
        take();
    }
}

// Somebody wants a blob to have values that chains left out.
void Net::follow_wants() {
    wants_changed_ = false;
    follow_fusions();
    find_last_readers();
}

}  // namespace sn
