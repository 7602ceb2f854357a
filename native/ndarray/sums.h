/* The loops that add up, compiled for several instruction sets. */
#ifndef SPARKNET_SUMS_H
#define SPARKNET_SUMS_H

#include "fold.h"

/*
 * Adds weights[k] times each of a few arrays to `count` sums, which begin at 0 the `first` time;
 * the last time the sums go to `out`, which is NULL before.
 */
typedef void (*sn_add_weighted)(double* sum, float* out, const float* const* in,
                                const double* weights, int arrays, int64_t count, bool first);

typedef struct sn_sum_kernels {
    sn_fold_kernel sum, dot, norm2, distance1, distance2;
    sn_fold_kernel not_finite, differ, far_float, far_double;
    sn_fold_kernel min, max;
    sn_add_weighted add_weighted;
} sn_sum_kernels;

/* The loops for this processor. All give the same results. */
const sn_sum_kernels* sn_sums(void);

extern const sn_sum_kernels sn_sums_baseline, sn_sums_haswell, sn_sums_skylake;

#endif
