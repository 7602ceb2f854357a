#include "array.h"

#include <stdlib.h>
#include <string.h>

sn_status sn_array_over(sn_array** out, sn_storage* storage, char* data, sn_dtype dtype, int ndim,
                        const int64_t* shape, const int64_t* strides, bool readonly) {
    sn_array* array = calloc(1, sizeof *array);
    if (array == NULL) return sn_fail(SN_ERROR_MEMORY, "there is no memory for an array");
    array->storage = sn_storage_retain(storage);
    array->data = data;
    array->dtype = dtype;
    array->ndim = ndim;
    array->readonly = readonly;
    array->size = 1;
    array->contiguous = true;
    int64_t plain = sn_item_size(dtype);
    for (int axis = ndim - 1; axis >= 0; --axis) {
        array->shape[axis] = shape[axis];
        array->strides[axis] = strides[axis];
        if (shape[axis] != 1 && strides[axis] != plain) array->contiguous = false;
        plain *= shape[axis] > 0 ? shape[axis] : 1;
        array->size *= shape[axis];
    }
    if (array->size == 0) array->contiguous = true;
    *out = array;
    return SN_OK;
}

/* An array over the whole of a fresh storage, whose first reference it takes over. */
static sn_status adopt(sn_array** out, sn_storage* storage, sn_dtype dtype, int ndim,
                       const int64_t* shape) {
    int64_t strides[SN_MAX_DIMS];
    sn_plain_strides(dtype, ndim, shape, strides);
    const sn_status status =
        sn_array_over(out, storage, storage->base, dtype, ndim, shape, strides, storage->readonly);
    sn_storage_drop(storage);
    return status;
}

sn_status sn_array_create(sn_array** out, sn_dtype dtype, int ndim, const int64_t* shape,
                          int zeroed) {
    int64_t size, bytes;
    sn_storage* storage;
    sn_status status = sn_measure(dtype, ndim, shape, &size, &bytes);
    if (status == SN_OK) status = sn_storage_heap(&storage, (size_t)bytes, zeroed != 0);
    return status == SN_OK ? adopt(out, storage, dtype, ndim, shape) : status;
}

sn_status sn_array_map(sn_array** out, const char* path, sn_dtype dtype, int ndim,
                       const int64_t* shape, sn_map_mode mode, int64_t offset) {
    int64_t size, bytes;
    sn_storage* storage;
    sn_status status = sn_measure(dtype, ndim, shape, &size, &bytes);
    if (status != SN_OK) return status;
    if (offset % sn_item_size(dtype) != 0)
        return sn_fail(SN_ERROR_ARRAY, "offset %lld is no multiple of the %lld bytes of a %s",
                       (long long)offset, (long long)sn_item_size(dtype), sn_dtype_name(dtype));
    status = sn_storage_map(&storage, path, (size_t)bytes, mode, offset);
    return status == SN_OK ? adopt(out, storage, dtype, ndim, shape) : status;
}

static sn_status check_alignment(const void* data, sn_dtype dtype, int ndim, const int64_t* shape,
                                 const int64_t* strides) {
    const int64_t item = sn_item_size(dtype);
    bool aligned = (intptr_t)data % item == 0;
    for (int axis = 0; axis < ndim; ++axis)
        aligned = aligned && (shape[axis] <= 1 || strides[axis] % item == 0);
    if (aligned) return SN_OK;
    return sn_fail(SN_ERROR_ARRAY, "memory at %p is not aligned for %s: copy it first", data,
                   sn_dtype_name(dtype));
}

sn_status sn_array_borrow(sn_array** out, void* data, sn_dtype dtype, int ndim,
                          const int64_t* shape, const int64_t* strides, int readonly,
                          sn_release release, void* context) {
    int64_t size, bytes, low, high, plain[SN_MAX_DIMS];
    sn_status status = sn_measure(dtype, ndim, shape, &size, &bytes);
    if (status != SN_OK) return status;
    if (strides == NULL) {
        sn_plain_strides(dtype, ndim, shape, plain);
        strides = plain;
    }
    status = size == 0 ? SN_OK : check_alignment(data, dtype, ndim, shape, strides);
    if (status == SN_OK) status = sn_extent(dtype, ndim, shape, strides, &low, &high);
    if (status != SN_OK) return status;
    sn_storage* storage;
    status = sn_storage_borrow(&storage, (char*)data + low, (size_t)(high - low), readonly != 0,
                               NULL, NULL);
    if (status != SN_OK) return status;
    status = sn_array_over(out, storage, data, dtype, ndim, shape, strides, readonly != 0);
    if (status == SN_OK) {
        storage->release = release;
        storage->context = context;
    }
    sn_storage_drop(storage);
    return status;
}

sn_status sn_array_flush(const sn_array* array) {
    return sn_storage_flush(array->storage);
}

void sn_array_free(sn_array* array) {
    if (array == NULL) return;
    if (array->loan) sn_storage_take_back(array->storage);
    sn_storage_drop(array->storage);
    free(array);
}

void sn_array_describe(sn_layout* out, const sn_array* array) {
    out->data = array->data;
    out->dtype = array->dtype;
    out->ndim = array->ndim;
    out->readonly = array->readonly;
    out->contiguous = array->contiguous;
    out->size = array->size;
    memcpy(out->shape, array->shape, (size_t)array->ndim * sizeof *array->shape);
    memcpy(out->strides, array->strides, (size_t)array->ndim * sizeof *array->strides);
}
