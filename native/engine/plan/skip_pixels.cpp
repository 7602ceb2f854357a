// Pixels that nobody reads are not computed: where all readers of a convolution's result are
// 1 x 1 convolutions with the same stride, which skip the pixels between, so does the convolution,
// and then perhaps the one before it.  In ResNets that is the end of each stage.
#include <algorithm>

#include "fusions.hpp"

namespace sn {

namespace {
const Layer& last_of(const Layer& head) {
    return head.fused_last ? *head.fused_last : head;
}

// Whether a blob belongs to the layers that are computed as one, from `head` on.
bool is_inside(const Layer& head, const Layer& layer) {
    return layer.index >= head.index && layer.index <= last_of(head).index;
}
// Whether what is left has several channels and several pixels: one alone would lie as rows do,
// of which a storage knows only whole ones.
bool are_planes(const Shape& shape, int64_t every) {
    return shape.size() == 4 && shape[1] > 1 && std::max(shape[2], shape[3]) > every;
}
}  // namespace

// Finds the layers behind `head` that read its result, also through Splits.  False if one of them
// is no convolution that begins a chain, or if a caller looks at the result.
bool Net::find_readers(const Layer& head, const Blob& blob, std::vector<Layer*>& found) {
    if (blob.wanted) return false;
    for (const Layer* writer : blob.writers)
        if (!is_inside(head, *writer)) return false;
    for (Layer* layer : blob.readers) {
        if (is_inside(head, *layer)) continue;
        if (layer->kernel->only_splits()) {
            for (const Blob* top : layer->tops)
                if (!find_readers(*layer, *top, found)) return false;
        } else if (layer->fused_into || layer->fused_other == &blob) {
            return false;
        } else {
            found.push_back(layer);
        }
    }
    return true;
}

// Of how many pixels of a chain's result, along each axis, its readers look at one.
void Net::skip_pixels(Layer& head) {
    std::vector<Layer*> readers;
    if (!head.fused_last || head.fused_product || head.tops.size() != 1 ||
        !find_readers(head, *head.fused_last->tops[0], readers) || readers.empty())
        return;
    const int64_t every = readers[0]->kernel->reads_every(*readers[0]);
    for (const Layer* reader : readers)
        if (reader->kernel->reads_every(*reader) != every) return;
    if (every == 1 || !are_planes(head.fused_last->tops[0]->shape(), every)) return;
    head.top_every = every;
    for (Layer* reader : readers) reader->bottom_every = every;
    head.skipping_readers = std::move(readers);
}

// From the last to the first: a convolution that skips pixels reads fewer.
void Net::find_skips() {
    for (Layer& layer : layers)
        layer.top_every = layer.bottom_every = 1, layer.skipping_readers.clear();
    if (keeps_blobs) return;
    for (size_t i = layers.size(); i-- > 0;)
        if (layers[i].kernel->followers(layers[i]) == Kernel::Followers::affine_sum_and_ending &&
            !layers[i].fused_into)
            skip_pixels(layers[i]);
}

// Whether all who skip pixels of a chain's result do so in a pass up to `last`.
bool Net::may_skip(const Layer& head, size_t last) const {
    return std::all_of(
        head.skipping_readers.begin(), head.skipping_readers.end(), [&](const Layer* reader) {
            return reader->fused && reader->fused_last->index <= last && are_ready(*reader);
        });
}

}  // namespace sn
