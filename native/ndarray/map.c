#include "map.h"

#include "stream.h"
#include "threads.h"
#include "walk.h"

typedef struct map_job {
    sn_map_kernel kernel;
    const float* settings;
    int64_t size;
    int reads;
    bool stream;
    sn_walk out, in[SN_MOST_INPUTS];
} map_job;

sn_status sn_check_float32(const sn_array* array) {
    if (array->dtype == SN_FLOAT32) return SN_OK;
    return sn_fail(SN_ERROR_ARRAY, "arithmetic needs float32, not %s", sn_dtype_name(array->dtype));
}

static void map_blocks(void* context, int64_t begin, int64_t end) {
    const map_job* job = context;
    _Alignas(64) float gathered[SN_MOST_INPUTS][SN_BLOCK], computed[SN_BLOCK];
    for (int64_t block = begin; block < end; ++block) {
        const int64_t start = block * SN_BLOCK, rest = job->size - start;
        const int64_t count = rest < SN_BLOCK ? rest : SN_BLOCK;
        const float* in[SN_MOST_INPUTS] = {NULL};
        for (int i = 0; i < job->reads; ++i)
            in[i] = sn_walk_read(&job->in[i], start, count, gathered[i]);
        float* out = job->stream ? computed : sn_walk_target(&job->out, start, computed);
        job->kernel(out, in, count, job->settings);
        if (job->stream)
            sn_stream(job->out.data + start * job->out.item, computed,
                      (size_t)count * sizeof(float));
        else
            sn_walk_scatter(&job->out, start, count, computed);
    }
    if (job->stream) sn_stream_end();
}

sn_status sn_undisturbed(sn_array** out, const sn_array* array, const sn_array* written) {
    if (sn_same_elements(array, written) || !sn_may_overlap(array, written))
        return sn_array_over(out, array->storage, array->data, array->dtype, array->ndim,
                             array->shape, array->strides, true);
    sn_array* copy;
    sn_status status = sn_array_create(&copy, array->dtype, array->ndim, array->shape, 0);
    if (status != SN_OK) return status;
    status = sn_array_copy(copy, array);
    if (status == SN_OK)
        *out = copy;
    else
        sn_array_free(copy);
    return status;
}

static sn_status check(const sn_array* out, int reads, const sn_array* const* in) {
    sn_status status = sn_check_float32(out);
    if (status == SN_OK) status = sn_check_writable(out);
    for (int i = 0; i < reads && status == SN_OK; ++i) {
        status = sn_check_float32(in[i]);
        if (status == SN_OK) status = sn_check_same_shape(out, in[i]);
    }
    return status;
}

/* No output is also an input, so writing past the cache is allowed. */
static bool may_stream(const sn_array* out, int reads, sn_array* const* in) {
    bool may = out->contiguous && sn_stream_pays((size_t)out->size * sizeof(float));
    for (int i = 0; i < reads; ++i) may = may && out->data != in[i]->data;
    return may;
}

sn_status sn_map(sn_map_kernel kernel, const float* settings, sn_array* out, int reads,
                 const sn_array* const* in) {
    sn_status status = check(out, reads, in);
    if (status != SN_OK || out->size == 0) return status;
    sn_array* safe[SN_MOST_INPUTS];
    int held = 0;
    for (; held < reads; ++held) {
        status = sn_undisturbed(&safe[held], in[held], out);
        if (status != SN_OK) break;
    }
    if (status == SN_OK) {
        map_job job = {.kernel = kernel,
                       .settings = settings,
                       .size = out->size,
                       .reads = reads,
                       .stream = may_stream(out, reads, safe)};
        sn_walk_init(&job.out, out);
        for (int i = 0; i < reads; ++i) sn_walk_init(&job.in[i], safe[i]);
        sn_parallel((job.size + SN_BLOCK - 1) / SN_BLOCK, job.size, map_blocks, &job);
        sn_storage_changed(out->storage);
    }
    while (held > 0) sn_array_free(safe[--held]);
    return status;
}
