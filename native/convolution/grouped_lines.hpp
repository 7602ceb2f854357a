// The innermost loops of Grouped.
#pragma once

#include "loop_ending.hpp"
#include "plane_lines.hpp"

namespace sn {

struct GroupedPlane : PlaneWindow {
    // Channels come last; each reads as many as a group has: 4, 8 or 16. A block of sixteen
    // channels is several groups, in vectors that take one of each group in turn.
    int64_t channels, blocks, group;
    // Values and factors are float or, if they are narrow, bfloat16; of these two channels of a
    // group are multiplied at once.
    bool narrow;
    const void* images;
    // For each block, tap and channel of a group, or each two: a factor, or two, for each output of
    // the block.
    const uint32_t* weights;
    // For each block, in the order of its vectors.
    const float* bias;
    // Plus the old value, if it `adds`; and the function of that.
    bool adds;
    LoopEnding end;
    void* to;

    // The channel of a block at a place of its vectors.
    int64_t channel(int64_t place) const {
        const int64_t groups = lanes / group;
        return place % groups * group + place / groups;
    }
};

// Computes rows `begin` to `end` of a block of an image of the target; the scratch begins with
// zeros, and belongs to the same job each time.
#if defined(__x86_64__)
void grouped_lines(const GroupedPlane& job, int64_t plane, int64_t begin, int64_t end,
                   float* scratch);
#else
inline void grouped_lines(const GroupedPlane&, int64_t, int64_t, int64_t, float*) {}
#endif

}  // namespace sn
