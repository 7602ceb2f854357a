/* An array's elements by their row-major number, in runs. */
#ifndef SPARKNET_WALK_H
#define SPARKNET_WALK_H

#include "array.h"

/* How many elements the buffers between arrays and kernels hold: they stay in the L1 cache. */
enum { SN_BLOCK = 1024 };

typedef struct sn_walk {
    char* data;
    int64_t shape[SN_MAX_DIMS];
    int64_t strides[SN_MAX_DIMS];
    int64_t item;
    int ndim;
    bool contiguous;
    sn_dtype dtype;
} sn_walk;

void sn_walk_init(sn_walk* walk, const sn_array* array);

/*
 * `count` elements from number `start` on: where they lie if they lie side by side, else
 * gathered in `buffer`.
 */
const void* sn_walk_read(const sn_walk* walk, int64_t start, int64_t count, void* buffer);

/* Where to write `count` elements from `start` on: in place, or `buffer`, to be scattered. */
void* sn_walk_target(const sn_walk* walk, int64_t start, void* buffer);
void sn_walk_scatter(const sn_walk* walk, int64_t start, int64_t count, const void* buffer);

#endif
