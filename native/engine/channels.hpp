// Layouts in which a channel is easy to find: plain rows, channels in blocks, channels last.
#pragma once

#include <algorithm>
#include <optional>

#include "tensor.hpp"

namespace sn {

// Values lie as (outer, groups, inner, block); channel = group * block + place in the block.
// The last block may be padded with zeros.
struct Channels {
    int64_t outer = 0, channels = 0, inner = 0, groups = 0, block = 1;
    dnnl::memory::desc desc;

    int64_t rows() const { return outer * groups; }
    int64_t row_size() const { return inner * block; }
    int64_t padded() const { return groups * block; }
    // How many channels of this row's block are real.
    int64_t real(int64_t row) const { return std::min(block, channels - row % groups * block); }
};

namespace layouts {
using Tag = dnnl::memory::format_tag;
struct Family {
    Tag last, by4, by8, by16;
};
inline std::optional<Family> family(size_t axes) {
    switch (axes) {
        case 3:
            return Family{Tag::nwc, Tag::nCw4c, Tag::nCw8c, Tag::nCw16c};
        case 4:
            return Family{Tag::nhwc, Tag::nChw4c, Tag::nChw8c, Tag::nChw16c};
        case 5:
            return Family{Tag::ndhwc, Tag::nCdhw4c, Tag::nCdhw8c, Tag::nCdhw16c};
        default:
            return std::nullopt;
    }
}
inline int64_t block_of(const dnnl::memory::desc& desc) {
    const auto dims = desc.get_dims();
    const auto known = family(dims.size());
    if (!known) return 0;
    const auto is = [&](Tag tag) {
        return desc == dnnl::memory::desc(dims, desc.get_data_type(), tag);
    };
    if (is(known->last)) return dims[1];
    if (is(known->by16)) return 16;
    if (is(known->by8)) return 8;
    return is(known->by4) ? 4 : 0;
}
}  // namespace layouts

// `layout`, of a tensor of two axes or more, if its channels are easy to find there; else rows.
inline Channels channels_of(const Tensor& tensor, const dnnl::memory::desc& layout) {
    const Shape& shape = tensor.shape();
    Channels found{shape[0], shape[1], count(shape, 2, shape.size()), shape[1], 1, layout};
    if (is_plain(found.desc) || tensor.count() == 0) {
        found.desc = tensor.plain();
        if (found.inner == 1) found.groups = 1, found.block = found.channels;
        return found;
    }
    const int64_t block = layouts::block_of(found.desc);
    if (block == 0) {
        found.desc = tensor.plain();
        return found;
    }
    found.block = block;
    found.groups = (found.channels + block - 1) / block;
    return found;
}

// The same in the newest layout, as float32.
inline Channels channels_of(const Tensor& tensor) {
    return channels_of(tensor, tensor.layout());
}

}  // namespace sn
