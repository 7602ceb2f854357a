// What a convolution or a product also computes in the test phase: BatchNorm, Scale and Bias become
// part of its weights; the sum with another blob and the function behind it become part of its
// pass.
#include <algorithm>

#include "fusions.hpp"

namespace sn {

namespace {
bool is_plain_relu(const Layer& layer) {
    return layer.kernel->relu_slope(layer) == 0.0F;
}
}  // namespace

// True if no caller would notice that a blob between two layers of a chain is never written.
bool Net::is_hidden(const Blob& blob) const {
    if (keeps_blobs || blob.wanted) return false;
    long readers = 0;
    for (const Layer* layer : blob.readers)
        if (std::count(layer->tops.begin(), layer->tops.end(), &blob) == 0) ++readers;
    return readers == 1;
}

bool Net::goes_on(const Layer& before, const Layer& layer) const {
    return continues(before, layer) && (layer.in_place() || is_hidden(*before.tops[0]));
}

// The other blob of a sum: it must exist before the convolution runs.
bool Net::can_add(const Layer& head, const Layer& before, const Layer& sum) const {
    if (before.tops.size() != 1 || sum.loss_weights.empty() || sum.loss_weights[0] != 0.0F ||
        !sum.kernel->adds_two(sum))
        return false;
    const Blob *own = before.tops[0], *top = sum.tops[0];
    if (!is_hidden(*own) || sum.bottoms[0] == sum.bottoms[1]) return false;
    if (top == sum.bottoms[0] || top == sum.bottoms[1]) return false;
    if (sum.bottoms[0] != own && sum.bottoms[1] != own) return false;
    const Blob* other = sum.bottoms[sum.bottoms[0] == own ? 1 : 0];
    for (size_t i = head.index; i < sum.index; ++i)
        if (std::count(layers[i].tops.begin(), layers[i].tops.end(), other)) return false;
    return other->shape() == own->shape();
}

void Net::fuse_inference(Layer& head) {
    Layer* last = &head;
    Layer* layer = next(head);
    const auto take = [&] {
        join(head, *layer);
        last = layer;
        layer = next(*layer);
    };
    const bool folds = head.kernel->followers(head) == Kernel::Followers::affine_sum_and_ending;
    while (folds && layer && layer->kernel->is_affine(*layer) && goes_on(*last, *layer)) {
        head.fused_affine.push_back(layer);
        take();
    }
    if (layer && can_add(head, *last, *layer)) {
        head.fused_sum = layer;
        head.fused_other = layer->bottoms[layer->bottoms[0] == last->tops[0] ? 1 : 0];
        take();
    }
    if (layer && is_plain_relu(*layer) && goes_on(*last, *layer)) {
        head.fused_relu = layer;
        take();
    } else if (layer && !layer->backward && layer->kernel->ending(*layer) &&
               goes_on(*last, *layer)) {
        head.fused_ending = layer->kernel->ending(*layer);
        take();
    }
}

// Two convolutions with what is fused into each; the first computes the second too.
void Net::fuse_product(Layer& head) {
    const Layer& last = head.fused_last ? *head.fused_last : head;
    Layer* product = next(last);
    if (head.fused_into || !product || !continues(last, *product) || !is_hidden(*last.tops[0]) ||
        !head.kernel->joins(head, *product))
        return;
    head.fused_product = product;
    head.fused_last = product->fused_last ? product->fused_last : product;
    product->fused_into = &head;
}

}  // namespace sn
