#include "formats.hpp"

#include <algorithm>

#include "../engine/channels.hpp"

namespace sn {

using dnnl::memory;

std::optional<memory::desc> alike(const memory::desc& like, const Shape& shape) {
    const auto dims = like.get_dims();
    const auto known = layouts::family(dims.size());
    if (!known || is_plain(like) || dims.size() != shape.size()) return std::nullopt;
    const auto type = like.get_data_type();
    for (auto tag : {known->by8, known->by16, known->last, known->by4})
        if (memory::desc(dims, type, tag) == like) return memory::desc(shape, type, tag);
    return std::nullopt;
}

int64_t together(const memory::desc& desc) {
    const auto blocks = desc.get_inner_blks();
    return blocks.empty() ? desc.get_dims()[1] : blocks[0];
}

Planes::Planes(const Tensor& from, const Shape& made) {
    const auto layout = from.layout();
    const auto found = alike(layout, made);
    if (found && from.shape().size() == 4) {
        source = layout, target = *found;
        inner = together(layout);
        outer = layout.get_padded_dims()[0] * layout.get_padded_dims()[1] / inner;
        return;
    }
    source = from.plain(), target = plain_desc(made);
    outer = count(from.shape(), 0, std::min<size_t>(2, from.shape().size()));
}

}  // namespace sn
