/* Many elements to one number, the same for any number of threads. */
#ifndef SPARKNET_FOLD_H
#define SPARKNET_FOLD_H

#include "array.h"

/*
 * Sums run in so many lanes side by side, whatever the processor, and lanes are added in
 * pairs. Each SN_CHUNK elements give one partial result; these are added in order.
 */
enum { SN_LANES = 32, SN_CHUNK = 16 * 1024 };

/* Adds `count` elements to the lanes; only the last call of a chunk has an odd count. */
typedef void (*sn_fold_kernel)(double* lanes, const void* const* in, int64_t count,
                               const double* settings);
/* Combines two partial results. */
typedef double (*sn_join)(double a, double b);

typedef struct sn_fold {
    sn_fold_kernel kernel;
    sn_join join;
    double start;
    double settings[2];
    /* The type of the kernel's elements: SN_FLOAT32 or SN_FLOAT64. */
    sn_dtype dtype;
} sn_fold;

/* One or two arrays (`b` may be NULL) of one shape. */
sn_status sn_fold_run(double* out, const sn_fold* fold, const sn_array* a, const sn_array* b);

#endif
