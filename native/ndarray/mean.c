/* The weighted mean of many arrays in one pass. */
#include <math.h>
#include <stdlib.h>

#include "map.h"
#include "stream.h"
#include "sums.h"
#include "threads.h"
#include "walk.h"

typedef struct mean_job {
    sn_walk out;
    sn_walk* in;
    double* weights;
    int64_t size;
    int count;
    bool stream;
    sn_add_weighted add;
} mean_job;

/* Arrays per group: few enough for their pointers and buffers to stay in the cache. */
enum { SN_TOGETHER = 8 };

static void mean_block(const mean_job* job, int64_t start, int64_t count,
                       float (*gathered)[SN_BLOCK], float* target) {
    _Alignas(64) double sum[SN_BLOCK];
    for (int first = 0; first < job->count; first += SN_TOGETHER) {
        const int left = job->count - first, arrays = left < SN_TOGETHER ? left : SN_TOGETHER;
        const float* in[SN_TOGETHER];
        for (int k = 0; k < arrays; ++k)
            in[k] = sn_walk_read(&job->in[first + k], start, count, gathered[k]);
        float* out = first + arrays == job->count ? target : NULL;
        job->add(sum, out, in, job->weights + first, arrays, count, first == 0);
    }
}

static void mean_blocks(void* context, int64_t begin, int64_t end) {
    const mean_job* job = context;
    _Alignas(64) float gathered[SN_TOGETHER][SN_BLOCK], computed[SN_BLOCK];
    for (int64_t block = begin; block < end; ++block) {
        const int64_t start = block * SN_BLOCK, rest = job->size - start;
        const int64_t count = rest < SN_BLOCK ? rest : SN_BLOCK;
        float* target = job->stream ? computed : sn_walk_target(&job->out, start, computed);
        mean_block(job, start, count, gathered, target);
        if (job->stream)
            sn_stream(job->out.data + start * job->out.item, computed,
                      (size_t)count * sizeof(float));
        else
            sn_walk_scatter(&job->out, start, count, computed);
    }
    if (job->stream) sn_stream_end();
}

static sn_status normalise(double* out, int count, const double* weights) {
    double sum = 0;
    for (int k = 0; k < count; ++k) sum += weights == NULL ? 1.0 : weights[k];
    if (!isfinite(sum) || sum == 0)
        return sn_fail(SN_ERROR_ARRAY, "the weights of a mean add up to %g", sum);
    for (int k = 0; k < count; ++k) out[k] = (weights == NULL ? 1.0 : weights[k]) / sum;
    return SN_OK;
}

/* Fills the job; `held` counts the references that the caller has to give back. */
static sn_status prepare(mean_job* job, sn_array** safe, int* held, const sn_array* out,
                         const sn_array* const* arrays) {
    for (int k = 0; k < job->count; ++k) {
        sn_status status = sn_check_float32(arrays[k]);
        if (status == SN_OK) status = sn_check_same_shape(out, arrays[k]);
        if (status == SN_OK) status = sn_undisturbed(&safe[k], arrays[k], out);
        if (status != SN_OK) return status;
        *held = k + 1;
        sn_walk_init(&job->in[k], safe[k]);
        job->stream = job->stream && safe[k]->data != out->data;
    }
    return SN_OK;
}

static sn_status mean(mean_job* job, sn_array** safe, const sn_array* out,
                      const sn_array* const* arrays, const double* weights) {
    int held = 0;
    sn_status status = normalise(job->weights, job->count, weights);
    if (status == SN_OK) status = prepare(job, safe, &held, out, arrays);
    if (status == SN_OK)
        sn_parallel((job->size + SN_BLOCK - 1) / SN_BLOCK, job->size * job->count, mean_blocks,
                    job);
    while (held > 0) sn_array_free(safe[--held]);
    return status;
}

sn_status sn_weighted_mean(sn_array* out, int count, const sn_array* const* arrays,
                           const double* weights) {
    if (count < 1) return sn_fail(SN_ERROR_ARRAY, "there is no mean of %d arrays", count);
    sn_status status = sn_check_float32(out);
    if (status == SN_OK) status = sn_check_writable(out);
    if (status != SN_OK) return status;
    mean_job job = {.count = count, .size = out->size, .add = sn_sums()->add_weighted};
    sn_walk_init(&job.out, out);
    job.stream = out->contiguous && sn_stream_pays((size_t)out->size * sizeof(float));
    job.in = calloc((size_t)count, sizeof *job.in);
    job.weights = calloc((size_t)count, sizeof *job.weights);
    sn_array** safe = calloc((size_t)count, sizeof *safe);
    if (job.in != NULL && job.weights != NULL && safe != NULL)
        status = mean(&job, safe, out, arrays, weights);
    else
        status = sn_fail(SN_ERROR_MEMORY, "there is no memory for the mean of %d arrays", count);
    sn_storage_changed(out->storage);
    free(job.in);
    free(job.weights);
    free(safe);
    return status;
}
