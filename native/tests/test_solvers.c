/* The solvers' steps: values, borders between parameters, refusals. */
#include <sparknet/engine.h>
#include <sparknet/solver.h>
#include <string.h>

#include "expect.h"

enum { SIZE = 200003 };

static const int64_t ends[] = {0, 5, 5, 70001, SIZE};
static const float rate_factors[] = {1, 1, 1, 2, 0}, decay_factors[] = {1, 0, 1, 1, 1};

static sn_array* filled(float value) {
    sn_array* array = made(SN_FLOAT32, 1, SHAPE(SIZE));
    SUCCEEDS(sn_array_fill(array, value));
    return array;
}

static sn_step start(void) {
    const sn_step step = {.weights = filled(2),
                          .gradient = filled(8),
                          .history = filled(1),
                          .history2 = filled(0),
                          .count = 5,
                          .ends = ends,
                          .rate_factors = rate_factors,
                          .decay_factors = decay_factors,
                          .rate = 0.5F,
                          .decay = 0.25F,
                          .clip = 0.5F,
                          .share = 0.25F};
    return step;
}

static void stop(const sn_step* step) {
    sn_array_free(step->weights);
    sn_array_free(step->gradient);
    sn_array_free(step->history);
    sn_array_free(step->history2);
}

static void expect(const sn_array* array, float first, float second, float third) {
    for (int64_t i = 0; i < SIZE; ++i) {
        const float want = i < 5 ? first : (i < 70001 ? second : third);
        EXPECT(floats(array)[i] == want);
    }
}

static void sgd(void) {
    const sn_step step = start();
    SUCCEEDS(sn_sgd_step(&step, 0.5F));
    expect(step.history, 1, 2, 0.5F);
    expect(step.gradient, 1, 2, 0.5F);
    expect(step.weights, 1, 0, 1.5F);
    stop(&step);
}

static void sgd_l1(void) {
    sn_step step = start();
    step.l1 = 1;
    SUCCEEDS(sn_sgd_step(&step, 0));
    expect(step.weights, 1.5F, 0.75F, 2);
    stop(&step);
}

static void nesterov(void) {
    const sn_step step = start();
    SUCCEEDS(sn_nesterov_step(&step, 0.5F));
    expect(step.history, 1, 2, 0.5F);
    expect(step.gradient, 1, 2.5F, 0.25F);
    stop(&step);
}

static void all_run_alike_on_any_number_of_threads(void) {
    float* first = malloc(SIZE * sizeof(float));
    EXPECT(first != NULL);
    for (int rule = 0; rule < 4; ++rule)
        for (int threads = 1; threads <= 3; ++threads) {
            SUCCEEDS(sn_set_threads(threads));
            const sn_step step = start();
            for (int i = 0; i < 3; ++i) {
                if (rule == 0) SUCCEEDS(sn_adagrad_step(&step, 1e-8F));
                if (rule == 1) SUCCEEDS(sn_rmsprop_step(&step, 0.9F, 1e-8F));
                if (rule == 2) SUCCEEDS(sn_adadelta_step(&step, 0.9F, 1e-6F));
                if (rule == 3) SUCCEEDS(sn_adam_step(&step, 0.9F, 0.99F, 1e-8F, 0.3F));
            }
            if (threads == 1) memcpy(first, floats(step.weights), SIZE * sizeof(float));
            EXPECT(memcmp(first, floats(step.weights), SIZE * sizeof(float)) == 0);
            EXPECT(first[0] != 2 && first[SIZE - 1] == 2);
            stop(&step);
        }
    free(first);
}

static void refusals(void) {
    sn_step step = start();
    step.count = 4;
    EXPECT(sn_sgd_step(&step, 0) == SN_ERROR_ARRAY);
    EXPECT(strstr(sn_message(), "end at 70001, the buffer at 200003") != NULL);
    step.count = 5;
    step.ends = (const int64_t[]){0, 5, 4, 70001, SIZE};
    EXPECT(sn_sgd_step(&step, 0) == SN_ERROR_ARRAY);
    step.ends = ends;
    sn_array *second = step.history2, *small = made(SN_FLOAT32, 1, SHAPE(3));
    step.history2 = NULL;
    EXPECT(sn_adam_step(&step, 0, 0, 0, 0) == SN_ERROR_ARRAY);
    step.history2 = small;
    EXPECT(sn_adam_step(&step, 0, 0, 0, 0) == SN_ERROR_ARRAY);
    step.history2 = step.history;
    EXPECT(sn_adam_step(&step, 0, 0, 0, 0) == SN_ERROR_ARRAY);
    expect(step.weights, 2, 2, 2);
    step.history2 = second;
    stop(&step);
    sn_array_free(small);
}

static void nothing(void) {
    sn_array* empty[3];
    for (int i = 0; i < 3; ++i) empty[i] = made(SN_FLOAT32, 1, SHAPE(0));
    const sn_step step = {.weights = empty[0], .gradient = empty[1], .history = empty[2]};
    SUCCEEDS(sn_sgd_step(&step, 0));
    for (int i = 0; i < 3; ++i) sn_array_free(empty[i]);
}

int main(void) {
    sgd();
    sgd_l1();
    nesterov();
    all_run_alike_on_any_number_of_threads();
    refusals();
    nothing();
    EXPECT(sn_live_storages() == 0);
    return 0;
}
