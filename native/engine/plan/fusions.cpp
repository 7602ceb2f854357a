// Which consecutive layers are computed at once, and how to return to computing them one by one.
#include "fusions.hpp"

#include <tuple>

namespace sn {

namespace {
// A layer repeats its last forward pass while this exists.
class Repeating {
   public:
    explicit Repeating(Layer& layer) : layer_(layer) { layer_.repeats = true; }
    ~Repeating() { layer_.repeats = false; }
    Repeating(const Repeating&) = delete;
    Repeating& operator=(const Repeating&) = delete;

   private:
    Layer& layer_;
};
}  // namespace

void Net::find_fusions() {
    for (auto& layer : layers) {
        layer.fused_relu = layer.fused_scale = layer.fused_into = layer.fused_last = nullptr;
        layer.fused_affine.clear(), layer.fused_ending.reset();
        layer.fused_sum = nullptr, layer.fused_other = nullptr, layer.fused_product = nullptr;
        layer.attention.reset();
    }
    for (auto& head : layers) {
        if (head.fused_into) continue;
        switch (head.kernel->followers(head)) {
            case Kernel::Followers::none:
                break;
            case Kernel::Followers::relu:
                fuse_train(head, false);
                break;
            case Kernel::Followers::scale_and_relu:
                fuse_train(head, true);
                break;
            case Kernel::Followers::affine_sum_and_ending:
            case Kernel::Followers::sum_and_ending:
                fuse_inference(head);
        }
    }
    for (auto& head : layers) fuse_product(head);
    for (auto& head : layers) fuse_attention(head);
    find_skips();
}

// A caller wants the values of a blob that fusing left out.
void Net::follow_wants() {
    wants_changed_ = false;
    follow_fusions();
    find_last_readers();
}

// Finds the fusions again, and prepares the layers whose followers have changed.
void Net::follow_fusions() {
    const auto chain = [](const Layer& layer) {
        return std::make_tuple(layer.fused_scale, layer.fused_relu, layer.fused_last,
                               layer.fused_sum, layer.fused_other, layer.fused_product,
                               layer.top_every, layer.bottom_every, layer.fused_affine, layer.twin);
    };
    std::vector<decltype(chain(layers[0]))> before;
    std::vector<std::shared_ptr<const Attention>> attentions;
    for (const Layer& layer : layers)
        before.push_back(chain(layer)), attentions.push_back(layer.attention);
    find_fusions();
    find_twins();
    for (Layer& layer : layers) {
        const auto& old = attentions[layer.index];
        const bool same =
            old && layer.attention ? *old == *layer.attention : old == layer.attention;
        if (same && chain(layer) == before[layer.index]) continue;
        const bool was_ready = layer.is_ready();
        layer.forget();
        if (was_ready) make_ready(layer);
        layer.fused = false;
    }
    find_rounded();
}

// Whether a layer can compute what follows it too: part of the net may have other shapes by now.
bool Net::are_ready(const Layer& head) const {
    for (size_t i = head.index; i <= head.fused_last->index; ++i)
        if (!layers[i].is_ready()) return false;
    if (head.attention)
        for (const Layer* member : head.attention->members)
            if (!member->is_ready()) return false;
    return true;
}

Layer* Net::next(const Layer& layer) {
    return layer.index + 1 < layers.size() ? &layers[layer.index + 1] : nullptr;
}

// Before layers first … last run: marks the layers that compute others, and those computed.
void Net::choose_fusions(size_t first, size_t last) {
    Layer* begun = layers[first].fused_into;
    if (begun && begun->fused && begun->kernel->fuses_backward()) unfuse(*begun);
    for (size_t i = last + 1; i < layers.size(); ++i)
        if (layers[i].attention) layers[i].fused = false;
    // Backwards: what readers do decides what is computed for them.
    for (size_t i = last + 1; i-- > first;)
        if (Layer& head = layers[i]; head.fused_last && head.prepared)
            head.fused = head.kernel->fuses() && head.fused_last->index <= last &&
                         may_skip(head, last) &&
                         (!head.attention ||
                          (head.attention->members[0]->index >= first && are_ready(head)));
}

// Before layers first down to last run: in a part of a fusion, each layer needs its own state.
void Net::split_fusions(size_t first, size_t last) {
    for (auto& head : layers)
        if (head.fused && head.fused_last->index >= last && head.index <= first &&
            (!head.fused_affine.empty() || (head.kernel->fuses_backward() &&
                                            (head.index < last || head.fused_last->index > first))))
            unfuse(head);
}

// Runs fused layers one by one, so that each has the state that its
// backward pass needs; the result keeps what later layers have made of it.
void Net::unfuse(Layer& head) {
    if (!head.fused) return;
    head.fused = are_ready(head);
    if (!head.fused) return;
    std::vector<std::pair<Blob*, std::optional<Tensor>>> later;
    const auto note = [&](Blob* blob) {
        later.emplace_back(blob, std::nullopt);
        if (!blob->data.storage().is_gone()) later.back().second.emplace().copy(blob->data);
    };
    note(head.fused_last->tops[0]);
    for (const Backup& backup : head.backups)
        if (backup.is_input && backup.is_taken)
            note(backup.blob), backup.blob->data.copy(backup.values);
    head.fused = false;
    if (head.fused_product) head.fused_product->fused = false;
    const Repeating repeating(head);
    for (size_t i = head.index; i <= head.fused_last->index; ++i)
        guarded(layers[i], [&] { run_forward(layers[i]); });
    for (auto& [blob, values] : later)
        if (values)
            blob->data.copy(*values);
        else
            blob->data.storage().give_back();
}

// Whether a layer before this one has computed it, or its gradient, too.
bool Net::is_fused(const Layer& layer, size_t first) const {
    const Layer* head = layer.fused_into;
    return head && ((head->fused && head->index >= first) || is_fused(*head, first));
}

}  // namespace sn
