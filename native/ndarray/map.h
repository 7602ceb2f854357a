/* Element by element: one or two arrays in, one out. */
#ifndef SPARKNET_MAP_H
#define SPARKNET_MAP_H

#include "array.h"

enum { SN_MOST_INPUTS = 2 };

/* Computes `count` elements; the output may be one of the inputs. */
typedef void (*sn_map_kernel)(float* out, const float* const* in, int64_t count,
                              const float* settings);

/* `out` is computed from `reads` of the arrays `in`, all float32 and of one shape. */
sn_status sn_map(sn_map_kernel kernel, const float* settings, sn_array* out, int reads,
                 const sn_array* const* in);

/* The checks that arithmetic makes. */
sn_status sn_check_float32(const sn_array* array);

/*
 * `array` itself if writing `out` element by element cannot disturb reading it, else a
 * copy of it. Both count as a new reference: free the result.
 */
sn_status sn_undisturbed(sn_array** out, const sn_array* array, const sn_array* written);

#endif
