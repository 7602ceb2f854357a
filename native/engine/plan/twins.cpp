// Which recurrent layers of one stream run at the same time: two of which neither needs the other,
// as the two directions of a bidirectional one.  Each is a chain of short steps for one thread.
#include <algorithm>

#include "../net.hpp"

namespace sn {

namespace {
bool has(const Blobs& blobs, const Blob& blob) {
    return std::any_of(blobs.begin(), blobs.end(), [&](const Blob* other) {
        return other->data.share_storage() == blob.data.share_storage();
    });
}

// A loss is added up as soon as its layer has run.
bool may_wait(const Layer& layer) {
    return layer.kernel->walks_alone(layer) && layer.loss_weights[0] == 0.0F;
}

// Whether a layer before `second` can wait for it: until then nobody needs what it makes, or
// changes what it reads while it walks.
bool can_wait(const std::deque<Layer>& layers, const Layer& first, const Layer& second) {
    const auto begin = layers.begin() + static_cast<long>(first.index) + 1;
    return std::none_of(
        begin, layers.begin() + static_cast<long>(second.index) + 1, [&](const Layer& layer) {
            return has(layer.bottoms, *first.tops[0]) || has(layer.tops, *first.tops[0]) ||
                   has(layer.tops, *first.bottoms[1]);
        });
}
}  // namespace

void Net::find_twins() {
    for (Layer& layer : layers) layer.twin = nullptr;
    for (Layer& second : layers) {
        if (!second.kernel->walks_alone(second)) continue;
        for (size_t i = second.index; i-- > 0 && !second.twin;) {
            Layer& first = layers[i];
            if (first.twin || !may_wait(first)) continue;
            if (can_wait(layers, first, second)) first.twin = &second, second.twin = &first;
        }
    }
}

void Net::choose_twins(size_t first, size_t last) {
    for (Layer& layer : layers)
        layer.waits = layer.twin && layer.index >= first && layer.index < layer.twin->index &&
                      layer.twin->index <= last;
}

}  // namespace sn
