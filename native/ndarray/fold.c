#include "fold.h"

#include <stdlib.h>

#include "cast.h"
#include "threads.h"
#include "walk.h"

typedef struct fold_job {
    const sn_fold* fold;
    sn_walk in[2];
    sn_cast cast[2];
    int reads;
    int64_t size;
    double* partials;
} fold_job;

static const void* read(const fold_job* job, int which, int64_t start, int64_t count,
                        void* gathered, void* converted) {
    const void* found = sn_walk_read(&job->in[which], start, count, gathered);
    if (job->cast[which] == NULL) return found;
    job->cast[which](converted, found, count);
    return converted;
}

static double fold_chunk(const fold_job* job, int64_t begin, int64_t end) {
    _Alignas(64) char gathered[2][SN_BLOCK * 8], converted[2][SN_BLOCK * 8];
    _Alignas(64) double lanes[SN_LANES];
    for (int lane = 0; lane < SN_LANES; ++lane) lanes[lane] = job->fold->start;
    bool direct = true;
    for (int i = 0; i < job->reads; ++i)
        direct = direct && job->in[i].contiguous && job->cast[i] == NULL;
    const int64_t step = direct ? SN_CHUNK : SN_BLOCK;
    for (int64_t start = begin; start < end; start += step) {
        const int64_t count = end - start < step ? end - start : step;
        const void* in[2] = {NULL, NULL};
        for (int i = 0; i < job->reads; ++i)
            in[i] = read(job, i, start, count, gathered[i], converted[i]);
        job->fold->kernel(lanes, in, count, job->fold->settings);
    }
    for (int width = SN_LANES / 2; width > 0; width /= 2)
        for (int lane = 0; lane < width; ++lane)
            lanes[lane] = job->fold->join(lanes[lane], lanes[lane + width]);
    return lanes[0];
}

static void fold_chunks(void* context, int64_t begin, int64_t end) {
    const fold_job* job = context;
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        const int64_t start = chunk * SN_CHUNK, rest = job->size - start;
        job->partials[chunk] = fold_chunk(job, start, start + (rest < SN_CHUNK ? rest : SN_CHUNK));
    }
}

static void add_input(fold_job* job, const sn_array* array) {
    sn_walk_init(&job->in[job->reads], array);
    if (array->dtype != job->fold->dtype)
        job->cast[job->reads] = sn_find_cast(job->fold->dtype, array->dtype);
    ++job->reads;
}

sn_status sn_fold_run(double* out, const sn_fold* fold, const sn_array* a, const sn_array* b) {
    const sn_status status = b == NULL ? SN_OK : sn_check_same_shape(a, b);
    if (status != SN_OK) return status;
    fold_job job = {.fold = fold, .size = a->size};
    add_input(&job, a);
    if (b != NULL) add_input(&job, b);
    const int64_t chunks = (a->size + SN_CHUNK - 1) / SN_CHUNK;
    double few[64];
    job.partials = chunks <= 64 ? few : malloc((size_t)chunks * sizeof(double));
    if (job.partials == NULL) return sn_fail(SN_ERROR_MEMORY, "there is no memory for a sum");
    sn_parallel(chunks, a->size, fold_chunks, &job);
    double result = fold->start;
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
        result = fold->join(result, job.partials[chunk]);
    if (job.partials != few) free(job.partials);
    *out = result;
    return SN_OK;
}
