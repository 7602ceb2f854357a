/* Copying, filling, and single elements. */
#include <string.h>

#include "array.h"
#include "cast.h"
#include "stream.h"
#include "threads.h"
#include "walk.h"

typedef struct copy_job {
    sn_walk out, in;
    sn_cast cast;
    int64_t size;
    bool stream;
} copy_job;

static void copy_blocks(void* context, int64_t begin, int64_t end) {
    const copy_job* job = context;
    _Alignas(64) char gathered[SN_BLOCK * 8], converted[SN_BLOCK * 8];
    for (int64_t block = begin; block < end; ++block) {
        const int64_t start = block * SN_BLOCK, rest = job->size - start;
        const int64_t count = rest < SN_BLOCK ? rest : SN_BLOCK;
        const void* source = sn_walk_read(&job->in, start, count, gathered);
        void* target = sn_walk_target(&job->out, start, converted);
        if (job->stream && job->in.dtype == job->out.dtype) {
            sn_stream(target, source, (size_t)(count * job->out.item));
        } else if (job->stream) {
            job->cast(converted, source, count);
            sn_stream(target, converted, (size_t)(count * job->out.item));
        } else {
            job->cast(target, source, count);
            sn_walk_scatter(&job->out, start, count, converted);
        }
    }
    if (job->stream) sn_stream_end();
}

/* Elements that are contiguous on both sides: the C library's copy is the fastest. */
static void copy_bytes(void* context, int64_t begin, int64_t end) {
    const copy_job* job = context;
    const int64_t first = begin * SN_BLOCK, past = end * SN_BLOCK;
    const int64_t count = (past < job->size ? past : job->size) - first;
    memcpy(job->out.data + first * job->out.item, job->in.data + first * job->in.item,
           (size_t)(count * job->out.item));
}

static void copy_apart(sn_array* out, const sn_array* array) {
    copy_job job = {.cast = sn_find_cast(out->dtype, array->dtype), .size = out->size};
    sn_walk_init(&job.out, out);
    sn_walk_init(&job.in, array);
    job.stream = out->contiguous && sn_stream_pays((size_t)(out->size * job.out.item));
    const bool plain = out->contiguous && array->contiguous && out->dtype == array->dtype;
    sn_parallel((out->size + SN_BLOCK - 1) / SN_BLOCK, out->size, plain ? copy_bytes : copy_blocks,
                &job);
}

sn_status sn_array_copy(sn_array* out, const sn_array* array) {
    sn_status status = sn_check_same_shape(out, array);
    if (status == SN_OK) status = sn_check_writable(out);
    if (status != SN_OK || out->size == 0 || sn_same_elements(out, array)) return status;
    if (!sn_may_overlap(out, array)) {
        copy_apart(out, array);
        sn_storage_changed(out->storage);
        return SN_OK;
    }
    sn_array* apart;
    status = sn_array_create(&apart, array->dtype, array->ndim, array->shape, 0);
    if (status != SN_OK) return status;
    copy_apart(apart, array);
    copy_apart(out, apart);
    sn_storage_changed(out->storage);
    sn_array_free(apart);
    return SN_OK;
}

typedef struct fill_job {
    sn_walk out;
    int64_t size;
    bool stream;
    _Alignas(64) char pattern[SN_BLOCK * 8];
} fill_job;

static void fill_blocks(void* context, int64_t begin, int64_t end) {
    const fill_job* job = context;
    for (int64_t block = begin; block < end; ++block) {
        const int64_t start = block * SN_BLOCK, rest = job->size - start;
        const int64_t count = rest < SN_BLOCK ? rest : SN_BLOCK;
        char* target = job->out.data + start * job->out.item;
        if (job->stream)
            sn_stream(target, job->pattern, (size_t)(count * job->out.item));
        else if (job->out.contiguous)
            memcpy(target, job->pattern, (size_t)(count * job->out.item));
        else
            sn_walk_scatter(&job->out, start, count, job->pattern);
    }
    if (job->stream) sn_stream_end();
}

sn_status sn_array_fill(sn_array* array, double value) {
    const sn_status status = sn_check_writable(array);
    if (status != SN_OK) return status;
    fill_job job;
    double values[SN_BLOCK];
    const int64_t used = array->size < SN_BLOCK ? array->size : SN_BLOCK;
    for (int64_t i = 0; i < used; ++i) values[i] = value;
    sn_find_cast(array->dtype, SN_FLOAT64)(job.pattern, values, used);
    sn_walk_init(&job.out, array);
    job.size = array->size;
    job.stream = array->contiguous && sn_stream_pays((size_t)(array->size * job.out.item));
    sn_parallel((array->size + SN_BLOCK - 1) / SN_BLOCK, array->size, fill_blocks, &job);
    sn_storage_changed(array->storage);
    return SN_OK;
}

static sn_status find_element(char** out, const sn_array* array, const int64_t* index) {
    char* element = array->data;
    for (int axis = 0; axis < array->ndim; ++axis) {
        if (index[axis] < 0 || index[axis] >= array->shape[axis])
            return sn_fail(SN_ERROR_INDEX, "index %lld is outside axis %d of size %lld",
                           (long long)index[axis], axis, (long long)array->shape[axis]);
        element += index[axis] * array->strides[axis];
    }
    *out = element;
    return SN_OK;
}

sn_status sn_array_get(double* out, const sn_array* array, const int64_t* index) {
    char* element = NULL;
    const sn_status status = find_element(&element, array, index);
    if (status == SN_OK) sn_find_cast(SN_FLOAT64, array->dtype)(out, element, 1);
    return status;
}

sn_status sn_array_set(sn_array* array, const int64_t* index, double value) {
    char* element = NULL;
    sn_status status = sn_check_writable(array);
    if (status == SN_OK) status = find_element(&element, array, index);
    if (status != SN_OK) return status;
    sn_find_cast(array->dtype, SN_FLOAT64)(element, &value, 1);
    sn_storage_changed(array->storage);
    return SN_OK;
}
