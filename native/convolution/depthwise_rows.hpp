// The innermost loops of a convolution that gives each channel a window of its own, in bfloat16,
// for processors that multiply pairs of such numbers.
#pragma once

#include <cstdint>

#include "loop_ending.hpp"

namespace sn {

struct DepthwiseJob {
    // Channels come last.  The window is a square of `side` taps: 3 or 5.
    int64_t channels, height, width, rows, columns, side;
    int64_t stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
    const uint16_t* images;
    // As many as a row of an image has.
    const uint16_t* zeros;
    // A row of channels for each tap.
    const uint16_t* weights;
    // y = sum + bias (if any), plus the old value if it `adds`; and the function of that.
    const float* bias;
    bool adds;
    LoopEnding end;
    uint16_t* to;
};

// Computes rows `begin` to `end` of the target, counted through all images.
#if defined(SPARKNET_AMX)
void depthwise_rows(const DepthwiseJob& job, int64_t begin, int64_t end);
#else
inline void depthwise_rows(const DepthwiseJob&, int64_t, int64_t) {}
#endif

}  // namespace sn
