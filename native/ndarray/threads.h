/* Work shared among threads, the same result for any number of them. */
#ifndef SPARKNET_THREADS_H
#define SPARKNET_THREADS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fewer elements than this are not worth waking threads for. */
enum { SN_PARALLEL_FROM = 1 << 16 };

/* Handles the blocks numbered begin .. end - 1. */
typedef void (*sn_body)(void* context, int64_t begin, int64_t end);

/* Runs body over all blocks, in contiguous ranges; which thread takes which is left open. */
void sn_parallel(int64_t blocks, int64_t elements, sn_body body, void* context);

/*
 * How many threads a parallel region may be given now. To be called before every region that
 * is not run by sn_parallel: it remembers that OpenMP's threads have been woken, so that a
 * forked child, which does not have them, works alone instead of waiting for them.
 */
int sn_team(void);

/* Whether work cut for so many threads can run here: not in a child forked after they worked. */
int sn_can_run(int threads);

#ifdef __cplusplus
}
#endif

#endif
