#include "other_term.hpp"

#include "../engine/net.hpp"
#include "pixels.hpp"

namespace sn {

using dnnl::memory;

namespace {
// After the sum has its other term: who reads it last gives its memory back.
void let_go(const Layer& layer) {
    const Tensor& other = layer.fused_other->data;
    const bool is_read = other.shares(layer.bottoms[0]->data);
    if (!is_read && layer.net->is_last_reader(*layer.fused_sum, *layer.fused_other))
        other.storage().give_back();
}
}  // namespace

memory edit_other(const Layer& layer, const memory::desc& wanted) {
    Tensor& top = layer.fused_last->tops[0]->data;
    const Tensor& other = layer.fused_other->data;
    if (layer.top_every > 1) {
        const auto to = top.write(last_axis(wanted.get_dims(), wanted.get_data_type()));
        move_pixels(other.read(last_axis(other.shape(), wanted.get_data_type())), layer.top_every,
                    to);
    } else {
        top.copy(other);
    }
    let_go(layer);
    return top.edit(wanted);
}

memory replace_other(const Layer& layer, const Int8& wanted, const Int8& after) {
    Tensor& top = layer.fused_last->tops[0]->data;
    const Tensor& other = layer.fused_other->data;
    if (layer.top_every > 1)
        move_pixels(
            other.read(Int8{last_axis(other.shape(), wanted.desc.get_data_type()), wanted.step}),
            layer.top_every, top.write(wanted));
    else
        top.copy(other);
    let_go(layer);
    return top.replace(wanted, after);
}

}  // namespace sn
