// The innermost loops of DepthwisePlanes.
#pragma once

#include <cstdint>

#include "loop_ending.hpp"
#include "plane_lines.hpp"

namespace sn {

// What makes the planes out of others, if anything does: a convolution of single pixels.
struct DepthwisePoints {
    // Of the images; 0: the images are the planes.
    int64_t channels = 0;
    // Sixteen weights for each channel of each block of outputs.
    const float* weights = nullptr;
    // One for each output.
    const float* bias = nullptr;
    LoopEnding end;
};

struct DepthwisePlane : PlaneWindow {
    // Planes of sixteen channels, of windows of 3, 5 or 7 taps along each axis.
    int64_t channels, blocks;
    const float* images;
    DepthwisePoints points;
    // Sixteen weights for each tap of each block.
    const float* weights;
    // y = sum + bias (if any), plus the old value if it `adds`; and the function of that.
    const float* bias;
    bool adds;
    LoopEnding end;
    float* to;
};

// Computes rows `begin` to `end` of a plane of the target; the scratch begins with zeros, and
// belongs to the same job each time.
#if defined(__x86_64__)
void depthwise_lines(const DepthwisePlane& job, int64_t plane, int64_t begin, int64_t end,
                     float* scratch);
#else
inline void depthwise_lines(const DepthwisePlane&, int64_t, int64_t, int64_t, float*) {}
#endif

}  // namespace sn
