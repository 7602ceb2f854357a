/* Rings: all bytes arrive in order, an end is seen, and a liar's positions lead nowhere. */
#include <pthread.h>
#include <sparknet/ring.h>
#include <stdint.h>
#include <string.h>

#include "expect.h"

enum { CAPACITY = 1000, MANY = 1 << 20, SOON = 20, LONG = 60000 };

static void* memory(void) {
    const size_t bytes = (size_t)sn_ring_bytes(CAPACITY);
    void* made = aligned_alloc(64, (bytes + 63) / 64 * 64);
    EXPECT(made != NULL);
    memset(made, 0, bytes);
    return made;
}

static unsigned char value(int64_t at) {
    return (unsigned char)((uint64_t)at * 2654435761U >> 16);
}

static void* write_all(void* context) {
    static unsigned char data[MANY];
    for (int64_t i = 0; i < MANY; ++i) data[i] = value(i);
    sn_ring* ring = context;
    int64_t at = 0;
    sn_ring_state state;
    for (int64_t piece = 1; at < MANY; piece = piece * 3 % 4099 + 1) {
        const int64_t size = piece < MANY - at ? piece : MANY - at;
        EXPECT(sn_ring_write(&state, ring, data + at, size, LONG) == size);
        EXPECT(state == SN_RING_OPEN);
        at += size;
    }
    sn_ring_end(ring);
    return NULL;
}

static void all_bytes_arrive_in_order(void) {
    void* shared = memory();
    sn_ring writer, reader;
    SUCCEEDS(sn_ring_open(&writer, shared, CAPACITY));
    SUCCEEDS(sn_ring_open(&reader, shared, CAPACITY));
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, write_all, &writer) == 0);
    unsigned char piece[3000];
    int64_t at = 0;
    sn_ring_state state = SN_RING_OPEN;
    while (state == SN_RING_OPEN) {
        const int64_t size = at % 2999 + 1;
        const int64_t done = sn_ring_read(&state, &reader, piece, size, LONG);
        EXPECT(done == size || state == SN_RING_ENDED);
        for (int64_t i = 0; i < done; ++i) EXPECT(piece[i] == value(at + i));
        at += done;
    }
    EXPECT(at == MANY);
    pthread_join(thread, NULL);
    free(shared);
}

static void nothing_comes_in_time(void) {
    void* shared = memory();
    sn_ring ring;
    char data[CAPACITY + 1] = {0};
    sn_ring_state state;
    SUCCEEDS(sn_ring_open(&ring, shared, CAPACITY));
    EXPECT(sn_ring_read(&state, &ring, data, 1, SOON) == 0 && state == SN_RING_OPEN);
    EXPECT(sn_ring_write(&state, &ring, data, CAPACITY + 1, SOON) == CAPACITY);
    EXPECT(state == SN_RING_OPEN);
    sn_ring_end(&ring);
    EXPECT(sn_ring_write(&state, &ring, data, 1, LONG) == 0 && state == SN_RING_ENDED);
    free(shared);
}

/* Whatever is in the header, the ring's own bytes are all that is read and written. */
static void a_liar_is_refused(void) {
    unsigned char* shared = memory();
    char data[2 * CAPACITY];
    sn_ring_state state;
    const size_t header = (size_t)(sn_ring_bytes(CAPACITY) - CAPACITY), taken = 64;
    for (size_t at = 0; at + 8 <= header; at += 4) {
        for (int said = 0; said < 3; ++said) {
            const uint64_t lie = (uint64_t[]){UINT64_MAX, CAPACITY + 1, 1ULL << 40}[said];
            memset(shared, 0, header);
            memcpy(shared + at, &lie, sizeof lie);
            sn_ring reader, writer;
            SUCCEEDS(sn_ring_open(&reader, shared, CAPACITY));
            SUCCEEDS(sn_ring_open(&writer, shared, CAPACITY));
            EXPECT(sn_ring_read(&state, &reader, data, sizeof data, 0) <= CAPACITY);
            EXPECT(at != 0 || state == SN_RING_BROKEN);
            memset(shared, 0, header);
            memcpy(shared + at, &lie, sizeof lie);
            EXPECT(sn_ring_write(&state, &writer, data, sizeof data, 0) <= CAPACITY);
            EXPECT(at != taken || said == 0 || state == SN_RING_BROKEN);
        }
    }
    free(shared);
}

static void what_is_no_ring(void) {
    sn_ring ring;
    _Alignas(64) char small[256];
    EXPECT(sn_ring_open(&ring, small, 0) == SN_ERROR_ARRAY);
    EXPECT(sn_ring_open(&ring, small + 1, 10) == SN_ERROR_ARRAY);
}

int main(void) {
    all_bytes_arrive_in_order();
    nothing_comes_in_time();
    a_liar_is_refused();
    what_is_no_ring();
    return 0;
}
