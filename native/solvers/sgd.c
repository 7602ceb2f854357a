/* Caffe: sgd_solver.cpp */
#include "step.h"

SN_KERNEL static void rule(const sn_stretch* stretch, const float* settings) {
    float *weights = stretch->weights, *gradient = stretch->gradient;
    float* history = stretch->history[0];
    const float rate = stretch->rate, momentum = settings[0];
    SN_EACH(i, stretch->count) {
        const float step = momentum * history[i] + rate * gradient[i];
        history[i] = step;
        gradient[i] = step;
        weights[i] -= step;
    }
}

sn_status sn_sgd_step(const sn_step* step, float momentum) {
    return sn_take_step(step, 1, rule, &momentum);
}
