// Blobs that nobody reads any more give their memory to those that are written next.
#include <algorithm>
#include <map>

#include "net.hpp"

namespace sn {

void Net::want(Blob& blob) {
    if (blob.wanted) return;
    blob.wanted = true;
    wants_changed_ = true;
}

// Blobs that look at each other's values have one storage, which the last reader of any of them
// gives back.
void Net::find_last_readers() {
    last_read_.assign(layers.size(), {});
    if (keeps_blobs) return;
    std::map<std::shared_ptr<Storage>, size_t> last;
    for (const Layer& layer : layers)
        for (const Blobs* side : {&layer.bottoms, &layer.tops})
            for (const Blob* blob : *side) last[blob->data.share_storage()] = layer.index;
    for (const Blob& blob : blobs)
        if (blob.wanted) last.erase(blob.data.share_storage());
    for (const auto& [storage, index] : last) last_read_[index].push_back(storage);
}

// A pass that starts within the net may find nothing where it starts.
void Net::check_bottoms(const Layer& layer) const {
    if (keeps_blobs) return;
    for (const Blob* bottom : layer.bottoms)
        if (bottom->data.storage().is_gone())
            layer.refuse("the values of '" + bottom->name +
                         "' were given back after their last reader: start the pass earlier, or "
                         "make the net with keep_blobs=True");
}

bool Net::is_last_reader(const Layer& layer, const Blob& blob) const {
    const auto& done = last_read_[layer.index];
    return std::count(done.begin(), done.end(), blob.data.share_storage()) > 0;
}

void Net::give_back_read(const Layer& layer) {
    for (const auto& storage : last_read_[layer.index]) storage->give_back();
}

}  // namespace sn
