/* Detects writes: a counter of writes, and one of loans. */
#include <stdatomic.h>

#include "array.h"

void sn_storage_changed(sn_storage* storage) {
    atomic_fetch_add(&storage->version, 1);
}

void sn_storage_lend(sn_storage* storage) {
    atomic_fetch_add(&storage->lent, 1);
}

/* In this order, so that a reader that sees no loan sees the new version too. */
void sn_storage_take_back(sn_storage* storage) {
    sn_storage_changed(storage);
    atomic_fetch_sub(&storage->lent, 1);
}

uint64_t sn_array_version(const sn_array* array) {
    sn_storage* storage = array->storage;
    const uint64_t version = atomic_load(&storage->version);
    return storage->own && atomic_load(&storage->lent) == 0 ? version : 0;
}

sn_status sn_array_lend(sn_array** out, const sn_array* array) {
    const sn_status status =
        sn_array_over(out, array->storage, array->data, array->dtype, array->ndim, array->shape,
                      array->strides, array->readonly);
    if (status != SN_OK) return status;
    (*out)->loan = true;
    sn_storage_lend(array->storage);
    return SN_OK;
}
