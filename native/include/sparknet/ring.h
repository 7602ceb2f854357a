/*
 * Rings: bytes from one process to another through memory that both have mapped.
 *
 * One side writes and one side reads, each in its own process. A ring is memory that is zero at
 * first. What the other process leaves there is not trusted: positions that no honest process
 * could have written are noticed, and no position leads outside the ring.
 */
#ifndef SPARKNET_RING_H
#define SPARKNET_RING_H

#include <sparknet/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One side of a ring; the fields are the library's. */
typedef struct sn_ring {
    void* memory;
    uint64_t capacity;
    /* Bytes written, or read, so far. */
    uint64_t position;
} sn_ring;

typedef enum sn_ring_state {
    SN_RING_OPEN = 0,
    SN_RING_ENDED = 1,
    /* The other process left positions that cannot be. */
    SN_RING_BROKEN = 2
} sn_ring_state;

/* The bytes of memory that a ring for `capacity` bytes needs. */
SN_API int64_t sn_ring_bytes(int64_t capacity);

/* `memory` is aligned to 64 bytes, and the same capacity is given on both sides. */
SN_API sn_status sn_ring_open(sn_ring* ring, void* memory, int64_t capacity);

/*
 * Writes up to `size` bytes and gives their number. Fewer are written when there is no room for
 * another byte within the given time, or the ring is no longer open.
 */
SN_API int64_t sn_ring_write(sn_ring_state* state, sn_ring* ring, const void* data, int64_t size,
                             int milliseconds);

/* Reads up to `size` bytes. A ring that has ended is read to its last byte first. */
SN_API int64_t sn_ring_read(sn_ring_state* state, sn_ring* ring, void* out, int64_t size,
                            int milliseconds);

/* Ends the ring and wakes both sides; from any thread, as often as you like. */
SN_API void sn_ring_end(sn_ring* ring);

#ifdef __cplusplus
}
#endif

#endif
