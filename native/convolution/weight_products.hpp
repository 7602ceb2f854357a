// The innermost loops of the gradients of a convolution's weights in bfloat16, for processors with
// AMX: products of the slopes with the values that each tap of the window meets.
#pragma once

#include <cstdint>

#include "../engine/bfloat16.hpp"

namespace sn {

// Images whose channels lie innermost, and the order in which their places are walked: place p of
// an image is row at[p] of it, or zeros if that is below zero.
struct WeightImages {
    const BFloat16* values = nullptr;
    int64_t channels = 0, images = 0, rows = 0;
    const int32_t* at = nullptr;
    int64_t places = 0;
};

struct WeightJob {
    static constexpr int64_t lanes = 16, step = 32, most_taps = 9;

    WeightImages source, slopes;
    // The places of the source that a tap meets lie `shifts` behind those of the slopes.
    int64_t taps = 1;
    const int64_t* shifts = nullptr;
    // Steps of 32 places of the slopes, and pairs of places of the source, from one segment to the
    // next: products stay within a segment.
    int64_t steps = 0, pairs = 0;
};

// The numbers of `segments` segments.  Where there are several taps, the source is there twice: the
// pairs of the second copy begin one place later.
struct WeightPanels {
    BFloat16 *slopes, *source;
    int64_t segments, steps, pairs;
};

#if defined(SPARKNET_AMX)
// Fills steps, or pairs, `begin` to `end` of panels that begin at the step, or pair, `first`.
void pack_slopes(const WeightJob& job, const WeightPanels& panels, int64_t first, int64_t begin,
                 int64_t end);
void pack_source(const WeightJob& job, const WeightPanels& panels, int64_t first, int64_t begin,
                 int64_t end);
// Blocks `begin` to `end` of 32 outputs and 32 inputs of the plain rows of the weights: puts the
// sums there, or adds them.
void multiply_panels(const WeightJob& job, const WeightPanels& panels, bool adds, float* rows,
                     int64_t begin, int64_t end);
#else
inline void pack_slopes(const WeightJob&, const WeightPanels&, int64_t, int64_t, int64_t) {}
inline void pack_source(const WeightJob&, const WeightPanels&, int64_t, int64_t, int64_t) {}
inline void multiply_panels(const WeightJob&, const WeightPanels&, bool, float*, int64_t, int64_t) {
}
#endif

}  // namespace sn
