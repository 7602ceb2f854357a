// The other term of a sum that a convolution computes too: the sum adds to it.
#pragma once

#include "../engine/layer.hpp"

namespace sn {

// The top of the fused layers with the values of the other term, in this layout.
dnnl::memory edit_other(const Layer& layer, const dnnl::memory::desc& wanted);
// The same in eight bits; the caller replaces them by others, as `after` says.
dnnl::memory replace_other(const Layer& layer, const Int8& wanted, const Int8& after);

}  // namespace sn
