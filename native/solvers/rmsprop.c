/* Caffe: rmsprop_solver.cpp */
#include "step.h"

SN_KERNEL static void rule(const sn_stretch* stretch, const float* settings) {
    float *weights = stretch->weights, *gradient = stretch->gradient;
    float* history = stretch->history[0];
    const float rate = stretch->rate, decay = settings[0], delta = settings[1], rest = 1 - decay;
    SN_EACH(i, stretch->count) {
        const float squares = decay * history[i] + rest * (gradient[i] * gradient[i]);
        const float step = rate * (gradient[i] / (sqrtf(squares) + delta));
        history[i] = squares;
        gradient[i] = step;
        weights[i] -= step;
    }
}

sn_status sn_rmsprop_step(const sn_step* step, float decay, float delta) {
    return sn_take_step(step, 1, rule, (const float[]){decay, delta});
}
