// The innermost loops of a convolution that gives each channel a window of its own, in bfloat16,
// for processors that multiply pairs of such numbers.
#pragma once

#include <cstdint>

#include "loop_ending.hpp"
#include "plane_lines.hpp"

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

// The same behind a convolution of single pixels, whose results it alone reads: they are made
// line by line, in strips of channels.
struct ExpandedJob : PlaneWindow {
    static constexpr int64_t strip = 32;

    // Of the convolution of pixels; of these there is an even number.
    int64_t inputs;
    const uint16_t* images;
    // Of each strip of its outputs and each two inputs: pairs, an output's behind another's.  Null:
    // there is no such convolution, and the windows look at the image's own channels.
    const uint16_t* points;
    // One for each output, in whole strips.
    const float* points_bias;
    LoopEnding points_end;
    // Channels, weights, bias, end and target of the windows.
    DepthwiseJob windows;
};

#if defined(SPARKNET_AMX)
// Computes rows `begin` to `end` of the target, counted through all images.
void depthwise_rows(const DepthwiseJob& job, int64_t begin, int64_t end);
// Computes rows `begin` to `end` of a strip of an image; the scratch is as that of
// depthwise_lines.
void expanded_rows(const ExpandedJob& job, int64_t plane, int64_t begin, int64_t end,
                   float* scratch);
#else
inline void depthwise_rows(const DepthwiseJob&, int64_t, int64_t) {}
inline void expanded_rows(const ExpandedJob&, int64_t, int64_t, int64_t, float*) {}
#endif

}  // namespace sn
