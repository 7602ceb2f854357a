/* Element by element: some arrays in, one or two out. */
#ifndef SPARKNET_MAP_H
#define SPARKNET_MAP_H

#include "array.h"

enum { SN_MOST_INPUTS = 3, SN_MOST_OUTPUTS = 2 };

/* Computes `count` elements; an output may be one of the inputs. */
typedef void (*sn_map_kernel)(float* const* out, const float* const* in, int64_t count,
                              const float* settings);

/* `writes` of the arrays `out` are computed from `reads` of `in`, all float32 and of one shape. */
sn_status sn_map(sn_map_kernel kernel, const float* settings, int writes, sn_array* const* out,
                 int reads, const sn_array* const* in);

/* The checks that arithmetic makes. */
sn_status sn_check_float32(const sn_array* array);

/*
 * `array` itself if writing `out` element by element cannot disturb reading it, else a
 * copy of it. Both count as a new reference: free the result.
 */
sn_status sn_undisturbed(sn_array** out, const sn_array* array, const sn_array* written);

#endif
