#include "threads.h"

#include <omp.h>
#include <pthread.h>
#include <sparknet/engine.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "failure.h"

enum { MOST_THREADS = 4096, PIECES = 8 };

static _Atomic int wanted;
static _Atomic bool woken;
static _Atomic bool orphaned;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void after_fork(void) {
    if (atomic_load(&woken)) atomic_store(&orphaned, true);
}

static void start(void) {
    int unset = 0;
    atomic_compare_exchange_strong(&wanted, &unset, omp_get_max_threads());
    pthread_atfork(NULL, NULL, after_fork);
}

int sn_threads(void) {
    pthread_once(&once, start);
    return atomic_load(&orphaned) ? 1 : atomic_load(&wanted);
}

sn_status sn_set_threads(int count) {
    pthread_once(&once, start);
    if (count < 1 || count > MOST_THREADS)
        return sn_fail(SN_ERROR_ARRAY, "the number of threads must be 1 to %d, not %d",
                       (int)MOST_THREADS, count);
    atomic_store(&wanted, count);
    return SN_OK;
}

int sn_team(void) {
    const int threads = sn_threads();
    if (threads > 1) atomic_store(&woken, true);
    return threads;
}

int sn_can_run(int threads) {
    return threads <= 1 || !atomic_load(&orphaned);
}

void sn_parallel(int64_t blocks, int64_t elements, sn_body body, void* context) {
    int64_t team = elements < SN_PARALLEL_FROM || blocks < 2 ? 1 : sn_team();
    if (team > blocks) team = blocks;
    if (team <= 1) {
        if (blocks > 0) body(context, 0, blocks);
        return;
    }
    /* Several pieces for each thread: a thread that other work delays takes fewer. */
    const int64_t pieces = blocks < team * PIECES ? blocks : team * PIECES;
    const int64_t share = blocks / pieces, more = blocks % pieces;
#pragma omp parallel for num_threads((int)team) schedule(dynamic)
    for (int64_t piece = 0; piece < pieces; ++piece) {
        const int64_t begin = piece * share + (piece < more ? piece : more);
        body(context, begin, begin + share + (piece < more));
    }
}
