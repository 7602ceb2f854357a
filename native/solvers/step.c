#include "step.h"

#include "../ndarray/array.h"
#include "../ndarray/threads.h"

/* Elements prepared and stepped at a time: four buffers of this size fit the L1 cache. */
enum { STRETCH = 1024 };

typedef struct step_job {
    const sn_step* step;
    sn_rule rule;
    const float* settings;
    bool is_decoupled;
    sn_stretch all;
} step_job;

SN_KERNEL static void scale(float* gradient, int64_t count, float clip, float share) {
    SN_EACH(i, count) gradient[i] = gradient[i] * clip * share;
}

SN_KERNEL static void add_weight(float* gradient, const float* weights, int64_t count,
                                 float decay) {
    SN_EACH(i, count) gradient[i] += decay * weights[i];
}

SN_KERNEL static void add_sign(float* gradient, const float* weights, int64_t count, float decay) {
    SN_EACH(i, count) {
        const float sign = weights[i] > 0 ? 1.0F : (weights[i] < 0 ? -1.0F : 0.0F);
        gradient[i] += decay * sign;
    }
}

SN_KERNEL static void shrink(float* weights, int64_t count, float share) {
    SN_EACH(i, count) weights[i] -= share * weights[i];
}

static void take(const step_job* job, int parameter, int64_t begin, int64_t end) {
    const sn_step* step = job->step;
    sn_stretch stretch = {.count = end - begin, .rate = step->rate * step->rate_factors[parameter]};
    stretch.weights = job->all.weights + begin;
    stretch.gradient = job->all.gradient + begin;
    for (int i = 0; i < SN_MOST_HISTORIES; ++i)
        if (job->all.history[i]) stretch.history[i] = job->all.history[i] + begin;
    const float decay = step->decay * step->decay_factors[parameter];
    if (step->clip != 1 || step->share != 1)
        scale(stretch.gradient, stretch.count, step->clip, step->share);
    if (decay != 0 && job->is_decoupled)
        shrink(stretch.weights, stretch.count, stretch.rate * decay);
    else if (decay != 0)
        (step->l1 ? add_sign : add_weight)(stretch.gradient, stretch.weights, stretch.count, decay);
    job->rule(&stretch, job->settings);
}

/* The parameter that element `where` belongs to. */
static int find(const sn_step* step, int64_t where) {
    int low = 0, high = step->count - 1;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (step->ends[middle] > where)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void take_blocks(void* context, int64_t first, int64_t last) {
    const step_job* job = context;
    const int64_t size = job->all.count;
    int64_t begin = first * STRETCH;
    const int64_t end = last * STRETCH < size ? last * STRETCH : size;
    for (int parameter = find(job->step, begin); begin < end;) {
        const int64_t own = job->step->ends[parameter];
        int64_t next = (begin / STRETCH + 1) * STRETCH;
        if (next > end) next = end;
        if (next > own) next = own;
        if (next > begin) take(job, parameter, begin, next);
        begin = next;
        if (begin == own) ++parameter;
    }
}

static sn_status check_buffer(const sn_array* array, const sn_array* weights) {
    if (!array) return sn_fail(SN_ERROR_ARRAY, "a buffer of the step is missing");
    if (array->dtype != SN_FLOAT32 || !array->contiguous || array->size != weights->size)
        return sn_fail(SN_ERROR_ARRAY,
                       "the buffers of a step are float32, without gaps, of one size");
    return sn_check_writable(array);
}

static sn_status check_buffers(int count, sn_array* const* buffers) {
    for (int i = 0; i < count; ++i) {
        const sn_status status = check_buffer(buffers[i], buffers[0]);
        if (status != SN_OK) return status;
        for (int j = 0; j < i; ++j)
            if (sn_may_overlap(buffers[i], buffers[j]))
                return sn_fail(SN_ERROR_ARRAY, "the buffers of a step share memory");
    }
    return SN_OK;
}

static sn_status check_ends(const sn_step* step) {
    int64_t begin = 0;
    for (int i = 0; i < step->count; ++i) {
        if (step->ends[i] < begin)
            return sn_fail(SN_ERROR_ARRAY, "parameter %d ends before it begins", i);
        begin = step->ends[i];
    }
    if (begin != step->weights->size)
        return sn_fail(SN_ERROR_ARRAY, "the parameters end at %lld, the buffer at %lld",
                       (long long)begin, (long long)step->weights->size);
    return SN_OK;
}

static sn_status take_step(const sn_step* step, int histories, sn_rule rule, const float* settings,
                           bool is_decoupled) {
    sn_array* const buffers[] = {step->weights, step->gradient, step->history, step->history2};
    sn_status status = check_buffers(2 + histories, buffers);
    if (status == SN_OK) status = check_ends(step);
    if (status != SN_OK) return status;
    const int64_t size = step->weights->size;
    step_job job = {.step = step, .rule = rule, .settings = settings, .all = {.count = size}};
    job.is_decoupled = is_decoupled;
    job.all.weights = (float*)(void*)step->weights->data;
    job.all.gradient = (float*)(void*)step->gradient->data;
    for (int i = 0; i < histories; ++i) job.all.history[i] = (float*)(void*)buffers[2 + i]->data;
    sn_parallel((size + STRETCH - 1) / STRETCH, size, take_blocks, &job);
    for (int i = 0; i < 2 + histories; ++i) sn_storage_changed(buffers[i]->storage);
    return SN_OK;
}

sn_status sn_take_step(const sn_step* step, int histories, sn_rule rule, const float* settings) {
    return take_step(step, histories, rule, settings, false);
}

sn_status sn_take_decoupled_step(const sn_step* step, int histories, sn_rule rule,
                                 const float* settings) {
    return take_step(step, histories, rule, settings, true);
}
