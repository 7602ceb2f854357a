/* Bytes through shared memory, with futexes for waiting: a process that waits uses no processor. */
#include <errno.h>
#include <limits.h>
#include <sparknet/ring.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "failure.h"

/* Bytes that are copied before the other side hears of them: both copies find them in a cache. */
enum { PIECE = 1 << 17, LINE = 64 };

/* One side's half of the header. The bell is rung when the other side waits for this position. */
typedef struct side {
    _Alignas(LINE) _Atomic uint64_t position;
    _Atomic uint32_t bell;
    _Atomic uint32_t awaited;
} side;

typedef struct header {
    side written, taken;
    _Alignas(LINE) _Atomic uint32_t ended;
} header;

static header* head(const sn_ring* ring) {
    return ring->memory;
}

static char* bytes(const sn_ring* ring) {
    return (char*)ring->memory + sizeof(header);
}

#if defined(__linux__)
static void wake(side* one) {
    atomic_fetch_add(&one->bell, 1);
    syscall(SYS_futex, &one->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Sleeps until the bell has another number than `bell`; false if the time is over. */
static bool doze(side* one, uint32_t bell, const struct timespec* until) {
    return syscall(SYS_futex, &one->bell, FUTEX_WAIT_BITSET, bell, until, NULL,
                   FUTEX_BITSET_MATCH_ANY) == 0 ||
           errno != ETIMEDOUT;
}
#else
/* Other systems have no futexes between processes: the waiting side looks again and again. */
static void wake(side* one) {
    atomic_fetch_add(&one->bell, 1);
}

static bool doze(side* one, uint32_t bell, const struct timespec* until) {
    const struct timespec nap = {.tv_nsec = 50000};
    struct timespec now;
    while (atomic_load(&one->bell) == bell) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > until->tv_sec ||
            (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
            return false;
        nanosleep(&nap, NULL);
    }
    return true;
}
#endif

static void move_to(side* one, uint64_t position) {
    atomic_store(&one->position, position);
    if (atomic_exchange(&one->awaited, 0)) wake(one);
}

static struct timespec after(int milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec += 1;
        until.tv_nsec -= 1000000000L;
    }
    return until;
}

/* Waits until the position is another one, the ring has ended, or the time is over. */
static void await(header* shared, side* one, uint64_t known, const struct timespec* until) {
    for (;;) {
        const uint32_t bell = atomic_load(&one->bell);
        atomic_store(&one->awaited, 1);
        if (atomic_load(&one->position) != known || atomic_load(&shared->ended)) return;
        if (!doze(one, bell, until)) return;
    }
}

int64_t sn_ring_bytes(int64_t capacity) {
    return (int64_t)sizeof(header) + capacity;
}

sn_status sn_ring_open(sn_ring* ring, void* memory, int64_t capacity) {
    if (capacity < 1 || (uintptr_t)memory % LINE != 0)
        return sn_fail(SN_ERROR_ARRAY, "there is no ring of %lld bytes at %p", (long long)capacity,
                       memory);
    *ring = (sn_ring){.memory = memory, .capacity = (uint64_t)capacity};
    return SN_OK;
}

/* Where the ring goes on, and how many of the next `count` bytes come before its end. */
static char* here(const sn_ring* ring, uint64_t count, uint64_t* before_end) {
    const uint64_t at = ring->position % ring->capacity, rest = ring->capacity - at;
    *before_end = count < rest ? count : rest;
    return bytes(ring) + at;
}

static void copy_in(const sn_ring* ring, const char* in, uint64_t count) {
    uint64_t first;
    char* const at = here(ring, count, &first);
    memcpy(at, in, first);
    memcpy(bytes(ring), in + first, count - first);
}

static void copy_out(const sn_ring* ring, char* out, uint64_t count) {
    uint64_t first;
    const char* const at = here(ring, count, &first);
    memcpy(out, at, first);
    memcpy(out + first, bytes(ring), count - first);
}

static uint64_t least(uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t less = a < b ? a : b;
    return less < c ? less : c;
}

int64_t sn_ring_write(sn_ring_state* state, sn_ring* ring, const void* data, int64_t size,
                      int milliseconds) {
    header* shared = head(ring);
    const struct timespec until = after(milliseconds);
    int64_t done = 0;
    bool waited = false;
    *state = SN_RING_OPEN;
    while (done < size) {
        const uint64_t taken = atomic_load(&shared->taken.position);
        const uint64_t unread = ring->position - taken;
        if (unread > ring->capacity) *state = SN_RING_BROKEN;
        if (atomic_load(&shared->ended)) *state = SN_RING_ENDED;
        if (*state != SN_RING_OPEN) break;
        if (unread == ring->capacity) {
            if (waited) break;
            await(shared, &shared->taken, taken, &until);
            waited = atomic_load(&shared->taken.position) == taken;
            continue;
        }
        const uint64_t count = least(ring->capacity - unread, (uint64_t)(size - done), PIECE);
        copy_in(ring, (const char*)data + done, count);
        ring->position += count;
        done += (int64_t)count;
        move_to(&shared->written, ring->position);
    }
    return done;
}

int64_t sn_ring_read(sn_ring_state* state, sn_ring* ring, void* out, int64_t size,
                     int milliseconds) {
    header* shared = head(ring);
    const struct timespec until = after(milliseconds);
    int64_t done = 0;
    bool waited = false;
    *state = SN_RING_OPEN;
    while (done < size) {
        /* In this order: what was written before the end is read after it. */
        const bool ended = atomic_load(&shared->ended);
        const uint64_t written = atomic_load(&shared->written.position);
        const uint64_t unread = written - ring->position;
        if (unread > ring->capacity) *state = SN_RING_BROKEN;
        if (unread == 0 && ended) *state = SN_RING_ENDED;
        if (*state != SN_RING_OPEN) break;
        if (unread == 0) {
            if (waited) break;
            await(shared, &shared->written, written, &until);
            waited = atomic_load(&shared->written.position) == written;
            continue;
        }
        const uint64_t count = least(unread, (uint64_t)(size - done), PIECE);
        copy_out(ring, (char*)out + done, count);
        ring->position += count;
        done += (int64_t)count;
        move_to(&shared->taken, ring->position);
    }
    return done;
}

void sn_ring_end(sn_ring* ring) {
    header* shared = head(ring);
    atomic_store(&shared->ended, 1);
    wake(&shared->written);
    wake(&shared->taken);
}
