// The patches under a sliding window as the columns of a matrix, over any number of axes
// (Caffe: im2col.cpp).
#pragma once

#include "tensor.hpp"

namespace sn {

// One image: (channels, sizes…); the windows over it; (outputs…) of them.
struct Patches {
    int64_t channels = 1;
    Shape sizes, outputs, kernel, stride, pad, dilation;

    int64_t inputs() const { return channels * count(sizes); }
    int64_t rows() const { return channels * count(kernel); }
    int64_t columns() const { return count(outputs); }

    // Image to (channels * kernel…, outputs…); zeros where a window reaches outside.
    void spread(const float* image, float* matrix) const;
    // Adds each patch to where it came from.
    void gather(const float* matrix, float* image) const;
};

}  // namespace sn
