// Convolution over more than three spatial axes.
#pragma once

#include "../engine/layer.hpp"

namespace sn {

// With `reverse` Deconvolution.
std::unique_ptr<Kernel> make_nd_convolution(bool reverse);

}  // namespace sn
