#include "broadcast.hpp"

#include "channels.hpp"

namespace sn {

Broadcast broadcast(const Tensor& tensor, size_t axis, size_t axes) {
    const Shape& shape = tensor.shape();
    Broadcast view;
    view.operands = count(shape, axis, axis + axes);
    if (axis <= 1 && axis + axes == 2 && shape.size() > 2 && !is_plain(tensor.newest())) {
        const Channels found = channels_of(tensor, tensor.newest());
        if (!is_plain(found.desc)) {
            view.records = axis == 0 ? found.outer : 1;
            view.outer = found.outer / view.records, view.blocks = found.groups * view.records;
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
