// A malloc that puts each block in front of a page which nobody may touch: what reads or writes
// behind a block ends the process at that instruction.  Loaded by LD_PRELOAD (guard.py).
//
// Blocks come from one reserved range of addresses, so that free() knows its own.  Small blocks,
// and those beyond what the system lets a process map, come from the C library.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
extern void __libc_free(void*);

enum { PAGE = 4096, SMALL = 128, PLAIN = 16, UNTOUCHED = 0xa5, USUAL = 65530 };
enum { NOBODYS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
static const size_t RANGE = (size_t)1 << 45;

// In the page before a block.
typedef struct {
    size_t asked, mapped;
    char* mapping;
} note;

static char *first, *last;
static _Atomic size_t used;
static _Atomic long blocks, most;

static long mappings(void) {
    char text[32] = {0};
    const int file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    return got > 0 ? atol(text) : USUAL;
}

__attribute__((constructor(101))) static void reserve(void) {
    void* range = mmap(NULL, RANGE, PROT_NONE, NOBODYS, -1, 0);
    if (range == MAP_FAILED) abort();
    // A block is two mappings, and half of all are left to others.
    atomic_store(&most, mappings() / 4);
    first = range;
    last = first + RANGE;
}

static bool is_guarded(const void* block) {
    return first != NULL && (const char*)block >= first && (const char*)block < last;
}

static note* note_of(const void* block) {
    return (note*)(((uintptr_t)block / PAGE - 1) * PAGE);
}

static void* guarded(size_t alignment, size_t bytes) {
    if (first == NULL || bytes < SMALL || bytes > RANGE / 2) return NULL;
    if (atomic_fetch_add(&blocks, 1) >= atomic_load(&most)) {
        atomic_fetch_sub(&blocks, 1);
        return NULL;
    }
    const size_t room = (bytes + alignment - 1) / alignment * alignment;
    const size_t body = (room + PAGE - 1) / PAGE * PAGE;
    const size_t slack = alignment > PAGE ? alignment : 0;
    const size_t whole = PAGE + slack + body + PAGE;
    const size_t at = atomic_fetch_add(&used, whole);
    char* mapping = first + at;
    if (at + whole > RANGE || mprotect(mapping, whole - PAGE, PROT_READ | PROT_WRITE) != 0) {
        atomic_fetch_sub(&blocks, 1);
        return NULL;
    }
    const uintptr_t end = (uintptr_t)mapping + whole - PAGE;
    char* block = (char*)((end - room) / alignment * alignment);
    *note_of(block) = (note){.asked = bytes, .mapped = whole, .mapping = mapping};
    memset(block, UNTOUCHED, bytes);
    return block;
}

void* malloc(size_t bytes) {
    void* block = guarded(PLAIN, bytes);
    return block != NULL ? block : __libc_malloc(bytes);
}

void* calloc(size_t count, size_t size) {
    size_t bytes = 0;
    void* block = __builtin_mul_overflow(count, size, &bytes) ? NULL : guarded(PLAIN, bytes);
    return block != NULL ? memset(block, 0, bytes) : __libc_calloc(count, size);
}

void free(void* block) {
    if (!is_guarded(block)) {
        __libc_free(block);
        return;
    }
    const note known = *note_of(block);
    // The addresses stay reserved: what else is mapped there would count as guarded.
    mmap(known.mapping, known.mapped, PROT_NONE, NOBODYS | MAP_FIXED, -1, 0);
    atomic_fetch_sub(&blocks, 1);
}

void* realloc(void* block, size_t bytes) {
    if (block == NULL) return malloc(bytes);
    if (!is_guarded(block)) return __libc_realloc(block, bytes);
    void* made = malloc(bytes);
    if (made == NULL) return NULL;
    const size_t had = note_of(block)->asked;
    memcpy(made, block, had < bytes ? had : bytes);
    free(block);
    return made;
}

void* memalign(size_t alignment, size_t bytes) {
    void* block = guarded(alignment < PLAIN ? PLAIN : alignment, bytes);
    return block != NULL ? block : __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void** out, size_t alignment, size_t bytes) {
    void* block = memalign(alignment, bytes);
    if (block == NULL) return ENOMEM;
    *out = block;
    return 0;
}
