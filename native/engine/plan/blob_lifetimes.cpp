// Blobs that nobody reads any more give their memory to the blobs that are written next.
#include <algorithm>
#include <map>

#include "../net.hpp"

namespace sn {

void Net::want(Blob& blob) {
    if (blob.wanted) return;
    blob.wanted = true;
    wants_changed_ = true;
}

namespace {
// Calls visit(blob) for each bottom and top of a layer.
template <class F>
void each_blob(const Layer& layer, F&& visit) {
    for (const Blobs* side : {&layer.bottoms, &layer.tops})
        for (const Blob* blob : *side) visit(*blob);
}

// Copies of weights in other layouts that the next pass makes again: of learned weights, and of
// those that others may write unnoticed, as in a mapped file.
void drop_layouts(const Layer& layer) {
    for (size_t i = 0; i < layer.params.size(); ++i) {
        Storage& values = layer.params[i]->data.storage();
        if (layer.learns[i] || values.version() == 0) values.drop_layouts();
    }
}

// Calls visit(blob) for each bottom and top whose values backward reads.
template <class F>
void each_read(const Layer& layer, F&& visit) {
    for (const auto role : {Kernel::Role::bottom, Kernel::Role::top}) {
        const Blobs& blobs = role == Kernel::Role::bottom ? layer.bottoms : layer.tops;
        for (size_t i = 0; i < blobs.size(); ++i)
            if (!layer.prepared || layer.kernel->looks_back(layer, role, i)) visit(*blobs[i]);
    }
}
}  // namespace

// Blobs that are views of each other have one storage, which the last reader of any of them
// gives back.
void Net::find_last_readers() {
    last_read_.assign(layers.size(), {});
    last_passed_.assign(layers.size(), {});
    find_backups();
    if (keeps_blobs) return;
    Storages read = read_last(), looked_at = looked_at_last(), passed = passed_last();
    for (const auto& [storage, index] : looked_at) read.erase(storage);
    for (Storages* found : {&read, &looked_at, &passed})
        for (const Blob& blob : blobs)
            if (blob.wanted)
                found->erase(blob.data.share_storage()), found->erase(blob.diff.share_storage());
    for (const auto& [storage, index] : read) last_read_[index].push_back(storage);
    for (const Storages* found : {&looked_at, &passed})
        for (const auto& [storage, index] : *found) last_passed_[index].push_back(storage);
}

// The last layer that reads or writes values, going forward.
Net::Storages Net::read_last() const {
    Storages found;
    for (const Layer& layer : layers) {
        const auto note = [&](const Blob& blob) { found[blob.data.share_storage()] = layer.index; };
        each_blob(layer, note);
        if (layer.attention)
            layer.attention->each_source([&](const auto& source) { note(*source.blob); });
    }
    return found;
}

// The last layer whose backward pass reads values: the first of the net that does.
Net::Storages Net::looked_at_last() const {
    Storages found;
    for (const Layer& layer : layers)
        if (layer.backward)
            each_read(layer, [&](const Blob& blob) {
                if (!layer.find_backup(blob)) found.emplace(blob.data.share_storage(), layer.index);
            });
    return found;
}

// The last layer that reads or writes gradients, if every backward pass writes them.
Net::Storages Net::passed_last() const {
    Storages found, written;
    for (const Layer& layer : layers) {
        if (!layer.backward) continue;
        for (const Blob* top : layer.tops) found.emplace(top->diff.share_storage(), layer.index);
        for (size_t i = 0; i < layer.bottoms.size(); ++i)
            if (layer.propagate[i]) {
                const auto& storage = layer.bottoms[i]->diff.share_storage();
                found.emplace(storage, layer.index);
                written.emplace(storage, layer.index);
            }
    }
    // The gradient of a loss is its weight.
    for (const Layer& layer : layers)
        for (size_t t = 0; t < layer.tops.size(); ++t)
            if (layer.loss_weights[t] != 0.0F) written.erase(layer.tops[t]->diff.share_storage());
    for (auto at = found.begin(); at != found.end();)
        at = written.count(at->first) > 0 ? std::next(at) : found.erase(at);
    return found;
}

// A pass that starts within the net may find its first values gone.
void Net::check_bottoms(const Layer& layer) const {
    if (keeps_blobs) return;
    const auto check = [&](const Blob& bottom) {
        if (bottom.data.storage().is_gone())
            layer.refuse("the values of '" + bottom.name +
                         "' were given back after their last reader: start the pass earlier, or "
                         "make the net with keep_blobs=True");
    };
    if (layer.fused && layer.attention)
        return layer.attention->each_source([&](const auto& one) { check(*one.blob); });
    for (const Blob* bottom : layer.bottoms) check(*bottom);
}

void Net::check_gradients(const Layer& layer) const {
    if (keeps_blobs) return;
    const auto refuse = [&](const Blob& blob, const std::string& what) {
        layer.refuse(what + " of '" + blob.name +
                     "' were given back after their last reader: begin with the forward pass of "
                     "the whole net, or make the net with keep_blobs=True");
    };
    for (const Blob* top : layer.tops)
        if (top->diff.storage().is_gone()) refuse(*top, "the gradients");
    each_read(layer, [&](const Blob& blob) {
        if (blob.data.storage().is_gone()) refuse(blob, "the values");
    });
}

bool Net::is_last_reader(const Layer& layer, const Blob& blob) const {
    const auto& done = last_read_[layer.index];
    return std::count(done.begin(), done.end(), blob.data.share_storage()) > 0;
}

void Net::give_back_read(const Layer& layer) {
    if (keeps_blobs) return;
    for (const auto& storage : last_read_[layer.index]) storage->give_back();
    drop_layouts(layer);
}

void Net::give_back_passed(Layer& layer) {
    if (keeps_blobs) return;
    for (Backup& backup : layer.backups) backup.values.storage().give_back();
    drop_layouts(layer);
    for (const auto& storage : last_passed_[layer.index]) storage->give_back();
}

}  // namespace sn
