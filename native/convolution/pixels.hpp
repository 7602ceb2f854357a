// Every second pixel, or every third, of images.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace sn {

// Images or sequences whose channels lie innermost.
inline dnnl::memory::desc last_axis(const dnnl::memory::dims& dims, dnnl::memory::data_type type) {
    using Tag = dnnl::memory::format_tag;
    return {dims, type, dims.size() == 3 ? Tag::nwc : Tag::nhwc};
}

// Copies them to images that have only those.  Channels lie innermost on both sides, as numbers of
// one type.
void move_pixels(const dnnl::memory& from, int64_t every, const dnnl::memory& to);

}  // namespace sn
