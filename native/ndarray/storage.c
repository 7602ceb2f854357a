#include "storage.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "failure.h"

// oneDNN reads whole vectors, up to a line behind the last value.
enum { LINE = 64, LARGE = 1 << 20 };

static _Atomic int64_t live;

int64_t sn_live_storages(void) {
    return atomic_load(&live);
}

sn_storage* sn_storage_blank(void) {
    sn_storage* storage = calloc(1, sizeof *storage);
    if (storage == NULL) return NULL;
    atomic_init(&storage->references, 1);
    atomic_init(&storage->version, 1);
    atomic_fetch_add(&live, 1);
    return storage;
}

static bool take_pages(sn_storage* storage, size_t bytes) {
    bytes += LINE;
    void* pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return false;
#ifdef MADV_HUGEPAGE
    madvise(pages, bytes, MADV_HUGEPAGE);
#endif
    storage->mapping = pages;
    storage->mapping_bytes = bytes;
    storage->base = pages;
    return true;
}

static bool take_block(sn_storage* storage, size_t bytes, bool zeroed) {
    const size_t rounded = (bytes + 2 * LINE - 1) / LINE * LINE;
    storage->block = aligned_alloc(LINE, rounded);
    if (storage->block == NULL) return false;
    if (zeroed) memset(storage->block, 0, rounded);
    storage->base = storage->block;
    return true;
}

sn_status sn_storage_heap(sn_storage** out, size_t bytes, bool zeroed) {
    sn_storage* storage = sn_storage_blank();
    if (storage != NULL) {
        storage->bytes = bytes;
        storage->own = true;
        if (bytes >= LARGE ? take_pages(storage, bytes) : take_block(storage, bytes, zeroed)) {
            *out = storage;
            return SN_OK;
        }
        sn_storage_drop(storage);
    }
    return sn_fail(SN_ERROR_MEMORY, "there is no memory for %zu bytes", bytes);
}

sn_status sn_storage_borrow(sn_storage** out, char* base, size_t bytes, bool readonly,
                            sn_release release, void* context) {
    sn_storage* storage = sn_storage_blank();
    if (storage == NULL) return sn_fail(SN_ERROR_MEMORY, "there is no memory for an array");
    storage->base = base;
    storage->bytes = bytes;
    storage->readonly = readonly;
    storage->release = release;
    storage->context = context;
    *out = storage;
    return SN_OK;
}

sn_storage* sn_storage_retain(sn_storage* storage) {
    atomic_fetch_add_explicit(&storage->references, 1, memory_order_relaxed);
    return storage;
}

void sn_storage_drop(sn_storage* storage) {
    if (atomic_fetch_sub_explicit(&storage->references, 1, memory_order_acq_rel) > 1) return;
    if (storage->mapping != NULL) munmap(storage->mapping, storage->mapping_bytes);
    if (storage->release != NULL) storage->release(storage->context);
    free(storage->block);
    free(storage);
    atomic_fetch_sub(&live, 1);
}
