#include "broadcast.hpp"

#include "channels.hpp"

namespace sn {

Broadcast broadcast(const Tensor& tensor, size_t axis, size_t axes) {
    const Shape& shape = tensor.shape();
    Broadcast view;
    view.operands = count(shape, axis, axis + axes);
    if (axis == 1 && axes == 1 && !is_plain(tensor.newest())) {
        const Channels found = channels_of(tensor, tensor.newest());
        if (!is_plain(found.desc)) {
            view.outer = found.outer, view.blocks = found.groups;
            view.inner = found.inner, view.lanes = found.block;
            view.desc = found.desc;
            return view;
        }
    }
    view.desc = tensor.plain();
    view.outer = count(shape, 0, axis);
    view.blocks = view.operands;
    view.inner = count(shape, axis + axes, shape.size());
    if (view.inner == 1) {  // rows of operands
        view.lanes = view.operands;
        view.inner = view.outer;
        view.outer = view.blocks = 1;
    }
    return view;
}

}  // namespace sn
