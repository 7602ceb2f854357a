/* Caffe: adadelta_solver.cpp */
#include "step.h"

SN_KERNEL static void rule(const sn_stretch* stretch, const float* settings) {
    float *weights = stretch->weights, *gradient = stretch->gradient;
    float *gradients = stretch->history[0], *changes = stretch->history[1];
    const float rate = stretch->rate, momentum = settings[0], delta = settings[1];
    const float rest = 1 - momentum;
    SN_EACH(i, stretch->count) {
        const float squares = momentum * gradients[i] + rest * (gradient[i] * gradient[i]);
        const float change = gradient[i] * sqrtf((delta + changes[i]) / (delta + squares));
        const float step = rate * change;
        gradients[i] = squares;
        changes[i] = momentum * changes[i] + rest * (change * change);
        gradient[i] = step;
        weights[i] -= step;
    }
}

sn_status sn_adadelta_step(const sn_step* step, float momentum, float delta) {
    return sn_take_step(step, 2, rule, (const float[]){momentum, delta});
}
