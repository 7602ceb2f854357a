// What oneDNN's layouts mean, so that a layer can use one for another shape.
#pragma once

#include <optional>

#include "../engine/tensor.hpp"

namespace sn {

// The layout `like`, which is blocked or channels-last, for a blob of another shape with as many
// axes, in the same type; nothing where `like` is plain or of an unknown kind.
std::optional<dnnl::memory::desc> alike(const dnnl::memory::desc& like, const Shape& shape);

// How many channels' values lie side by side in such a layout.
int64_t together(const dnnl::memory::desc& desc);

// Images in whatever layout they are in: `outer` planes of high × wide × `inner` values, and the
// same for the images that are made of them.
struct Planes {
    Planes(const Tensor& from, const Shape& made);

    dnnl::memory::desc source, target;
    int64_t outer = 0, inner = 1;
};

}  // namespace sn
