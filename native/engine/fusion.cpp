// Which layers in a row are computed at once, and how to get back to one by one.
#include "fusion.hpp"

#include <tuple>

namespace sn {

namespace {
// Whether a layer works in place on what the one before it made, and nothing else.
bool follows(const Layer& before, const Layer& layer, const char* type) {
    return layer.type == type && continues(before, layer) && layer.in_place() &&
           layer.backward == before.backward;
}

// A layer repeats its last forward pass as long as this lives.
class Again {
   public:
    explicit Again(Layer& layer) : layer_(layer) { layer_.again = true; }
    ~Again() { layer_.again = false; }
    Again(const Again&) = delete;
    Again& operator=(const Again&) = delete;

   private:
    Layer& layer_;
};

// A slope below zero would lose the sign that the gradient needs.
bool keeps_sign(const Layer& relu) {
    return relu.options.real("negative_slope", 0) >= 0.0;
}
}  // namespace

// What follows a convolution (test phase), an in-place ReLU behind a sum (train phase), in-place
// Scale and ReLU behind BatchNorm.
void Net::find_fusions() {
    for (auto& layer : layers) {
        layer.fused_relu = layer.fused_scale = layer.fused_into = layer.fused_last = nullptr;
        layer.fused_affine.clear();
        layer.fused_sum = nullptr, layer.fused_other = nullptr;
    }
    for (auto& head : layers) {
        if (head.fused_into) continue;
        if (!train) find_chain(head);
        if (head.type == "Eltwise" && train)
            if (Layer* relu = next(head); relu && follows(head, *relu, "ReLU"))
                head.fused_relu = relu, join(head, *relu);
        // The gradient of a blob between would be seen.
        if (head.type == "BatchNorm" && (head.in_place() || !head.backward)) {
            Layer* last = &head;
            Layer* scale = next(*last);
            if (scale && follows(*last, *scale, "Scale") && by_channel(*scale))
                head.fused_scale = last = scale, join(head, *scale);
            Layer* relu = next(*last);
            if (relu && follows(*last, *relu, "ReLU") && keeps_sign(*relu))
                head.fused_relu = relu, join(head, *relu);
        }
    }
}

// Finds them again, and makes those ready whose followers are others than before.
void Net::follow_fusions() {
    const auto chain = [](const Layer& layer) {
        return std::make_tuple(layer.fused_scale, layer.fused_relu, layer.fused_last,
                               layer.fused_sum, layer.fused_other, layer.fused_affine);
    };
    std::vector<decltype(chain(layers[0]))> before;
    for (const Layer& layer : layers) before.push_back(chain(layer));
    find_fusions();
    for (Layer& layer : layers) {
        if (chain(layer) == before[layer.index]) continue;
        if (layer.is_ready()) make_ready(layer);
        layer.fused = false;
    }
}

// Whether a layer can compute what follows it too: a part of the net may have other shapes by now.
bool Net::are_ready(const Layer& head) const {
    for (size_t i = head.index; i <= head.fused_last->index; ++i)
        if (!layers[i].is_ready()) return false;
    return true;
}

Layer* Net::next(const Layer& layer) {
    return layer.index + 1 < layers.size() ? &layers[layer.index + 1] : nullptr;
}

// Before layers first … last run: who computes others with itself, and who was computed.
void Net::choose_fusions(size_t first, size_t last) {
    Layer* begun = layers[first].fused_into;
    if (begun && begun->fused && begun->kernel->fuses_backward()) unfuse(*begun);
    for (size_t i = first; i <= last; ++i)
        if (Layer& head = layers[i]; head.fused_last && head.prepared)
            head.fused = head.kernel->fuses() && head.fused_last->index <= last;
}

// Before layers first down to last run: where only a part of them was meant, each has its notes.
void Net::split_fusions(size_t first, size_t last) {
    for (auto& head : layers)
        if (head.fused && head.fused_last->index >= last && head.index <= first &&
            (!head.fused_affine.empty() || (head.kernel->fuses_backward() &&
                                            (head.index < last || head.fused_last->index > first))))
            unfuse(head);
}

// Runs what was computed at once one by one, so that each layer has the notes of its own that its
// backward pass needs; the result stays what later layers have made of it.
void Net::unfuse(Layer& head) {
    if (!head.fused) return;
    head.fused = are_ready(head);
    if (!head.fused) return;
    Tensor& top = head.fused_last->tops[0]->data;
    const bool is_gone = top.storage().is_gone();
    Tensor result;
    if (!is_gone) result.copy(top);
    head.fused = false;
    const Again again(head);
    for (size_t i = head.index; i <= head.fused_last->index; ++i)
        guarded(layers[i], [&] { layers[i].kernel->forward(layers[i]); });
    if (is_gone)
        top.storage().give_back();
    else
        top.copy(result);
}

// Whether a layer before this one has computed it, or its gradient, too.
bool Net::is_fused(const Layer& layer, size_t first) const {
    const Layer* head = layer.fused_into;
    return head && head->fused && head->index >= first;
}

}  // namespace sn
