// The innermost loops of a convolution that gives each channel a window of its own and of the
// product that follows it, in bfloat16, for processors with AMX: what lies between them stays in
// the cache.
#pragma once

#include <cstdint>

namespace sn {

struct SeparableJob {
    static constexpr int64_t lanes = 16, strip = 32, tile_bytes = 1024, most_taps = 32;

    // Channels come last; pixels are those of the target, counted through all images.
    int64_t channels, outputs, height, width, rows, columns;
    int64_t kernel_rows, kernel_columns, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
    const uint16_t* images;
    // As many as a row of an image has.
    const uint16_t* zeros;
    // Of each strip of channels two taps lie beside each other, in the order of shuffled().
    const uint16_t* taps;
    // Of each sixteen outputs and each strip of channels a tile, in the order of shuffled() too.
    const uint16_t* weights;
    // y = sum + bias, at least `least`, of the windows and of the product; in whole strips.
    const float *middle_bias, *bias;
    float middle_least, least;
    // How many pixels are kept between the two, in whole strips.
    int64_t block;
    uint16_t* to;

    int64_t strips() const { return (channels + strip - 1) / strip; }
    int64_t pairs() const { return (kernel_rows * kernel_columns + 1) / 2; }
    // The channel that comes at a place of a strip.
    static int64_t shuffled(int64_t place) {
        const int64_t half = place / lanes, lane = place % lanes;
        return lane / 4 * 8 + half * 4 + lane % 4;
    }
};

// Computes pixels `begin` to `end`; `middle` has room for a block of them.
#if defined(SPARKNET_AMX)
void separable_rows(const SeparableJob& job, uint16_t* middle, int64_t begin, int64_t end);
#else
inline void separable_rows(const SeparableJob&, uint16_t*, int64_t, int64_t) {}
#endif

}  // namespace sn
