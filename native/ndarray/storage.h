/* Memory with a count of the arrays over it: owned, borrowed or mapped. */
#ifndef SPARKNET_STORAGE_H
#define SPARKNET_STORAGE_H

#include <sparknet/ndarray.h>
#include <stdbool.h>

typedef struct sn_storage {
    _Atomic long references;
    char* base;
    size_t bytes;
    bool readonly;
    /* What has to be unmapped; NULL for other memory. */
    void* mapping;
    size_t mapping_bytes;
    bool shared;
    /* Called for borrowed memory. */
    sn_release release;
    void* context;
    /* Freed with free(). */
    void* block;
    /* Owned memory: unless it is lent, only this library writes to it. */
    bool own;
    _Atomic uint64_t version;
    _Atomic long lent;
} sn_storage;

sn_status sn_storage_heap(sn_storage** out, size_t bytes, bool zeroed);
sn_status sn_storage_borrow(sn_storage** out, char* base, size_t bytes, bool readonly,
                            sn_release release, void* context);
sn_status sn_storage_map(sn_storage** out, const char* path, size_t bytes, sn_map_mode mode,
                         int64_t offset);
sn_status sn_storage_flush(const sn_storage* storage);
sn_storage* sn_storage_retain(sn_storage* storage);
void sn_storage_drop(sn_storage* storage);

/* After every write: what was made from the old values is out of date (versions.c). */
void sn_storage_changed(sn_storage* storage);
void sn_storage_lend(sn_storage* storage);
void sn_storage_take_back(sn_storage* storage);

/* A storage with one reference and nothing in it; NULL when there is no memory. */
sn_storage* sn_storage_blank(void);

#endif
