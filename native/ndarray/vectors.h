/*
 * Short vectors for the loops that add up, so that the order of the additions is ours and the
 * same on every processor: the compiler splits them where the registers are narrower.
 */
#ifndef SPARKNET_VECTORS_H
#define SPARKNET_VECTORS_H

#include <stdint.h>
#include <string.h>

typedef float sn_floats __attribute__((vector_size(64)));
typedef int32_t sn_ints __attribute__((vector_size(64)));
typedef float sn_half __attribute__((vector_size(16)));
typedef double sn_doubles __attribute__((vector_size(32)));
typedef int64_t sn_longs __attribute__((vector_size(32)));

#define SN_INLINE static inline __attribute__((always_inline))

SN_INLINE sn_floats sn_load(const float* from) {
    sn_floats out;
    memcpy(&out, from, sizeof out);
    return out;
}

/* Four floats as doubles: a width that every processor converts straight from memory. */
SN_INLINE sn_doubles sn_widen(const float* from) {
    sn_half half;
    memcpy(&half, from, sizeof half);
    return __builtin_convertvector(half, sn_doubles);
}

SN_INLINE void sn_narrow(float* to, sn_doubles x) {
    const sn_half half = __builtin_convertvector(x, sn_half);
    memcpy(to, &half, sizeof half);
}

SN_INLINE sn_doubles sn_load_doubles(const double* from) {
    sn_doubles out;
    memcpy(&out, from, sizeof out);
    return out;
}

SN_INLINE sn_doubles sn_magnitude(sn_doubles x) {
    return (sn_doubles)((sn_longs)x & INT64_MAX);
}

/* a where the mask has ones, b elsewhere. */
SN_INLINE sn_floats sn_choose(sn_ints mask, sn_floats a, sn_floats b) {
    return (sn_floats)((mask & (sn_ints)a) | (~mask & (sn_ints)b));
}

#endif
