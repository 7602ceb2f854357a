// The innermost loops of a convolution of single pixels in bfloat16, for processors that multiply
// pairs of such numbers: products of rows of the image's channels with the weights.
#pragma once

#include <cstdint>

#include "loop_ending.hpp"

namespace sn {

struct PointsJob {
    static constexpr int64_t strip = 32;  // outputs that are computed together

    // Channels come last; of the inputs there is an even number.
    int64_t inputs, outputs;
    const uint16_t* images;
    // Of each strip of outputs and each two inputs: pairs, an output's behind another's; so many
    // numbers a strip.
    const uint16_t* weights;
    int64_t strip_size;
    // y = sum + bias (if any), plus the old value if it `adds`; and the function of that.
    const float* bias;
    bool adds;
    LoopEnding end;
    uint16_t* to;

    int64_t strips() const { return (outputs + strip - 1) / strip; }
};

// Some pixels, counted through all images, and some strips of outputs.
struct PointsPart {
    int64_t first_pixel, last_pixel, first_strip, last_strip;
};

#if defined(SPARKNET_AMX)
void point_rows(const PointsJob& job, const PointsPart& part);
#else
inline void point_rows(const PointsJob&, const PointsPart&) {}
#endif

}  // namespace sn
