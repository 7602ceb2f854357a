// Factors and shifts for each channel of bfloat16, for processors that round two vectors of floats
// to one of such numbers.
#pragma once

#include <cstdint>

namespace sn {

struct ChannelFactors {
    // One for each channel, again and again until whole vectors are full: `period` values; no
    // shifts: null.
    const float *factors, *shifts;
    int64_t period;
};

#if defined(SPARKNET_AMX)
// to = factor x from + shift of `count` values, the first of which has the first factor; both may
// be the same memory.
void multiply_channels(const ChannelFactors& by, const uint16_t* from, int64_t count, uint16_t* to);
#else
inline void multiply_channels(const ChannelFactors&, const uint16_t*, int64_t, uint16_t*) {}
#endif

}  // namespace sn
