/* Caffe: adam_solver.cpp */
#include "step.h"

SN_KERNEL static void rule(const sn_stretch* stretch, const float* settings) {
    float *weights = stretch->weights, *gradient = stretch->gradient;
    float *mean = stretch->history[0], *squares = stretch->history[1];
    const float momentum = settings[0], momentum2 = settings[1], delta = settings[2];
    const float rate = stretch->rate * settings[3], rest = 1 - momentum, rest2 = 1 - momentum2;
    SN_EACH(i, stretch->count) {
        const float m = momentum * mean[i] + rest * gradient[i];
        const float v = momentum2 * squares[i] + rest2 * (gradient[i] * gradient[i]);
        const float step = rate * (m / (sqrtf(v) + delta));
        mean[i] = m;
        squares[i] = v;
        gradient[i] = step;
        weights[i] -= step;
    }
}

sn_status sn_adam_step(const sn_step* step, float momentum, float momentum2, float delta,
                       float correction) {
    const float settings[] = {momentum, momentum2, delta, correction};
    return sn_take_step(step, 2, rule, settings);
}

sn_status sn_adamw_step(const sn_step* step, float momentum, float momentum2, float delta,
                        float correction) {
    const float settings[] = {momentum, momentum2, delta, correction};
    return sn_take_decoupled_step(step, 2, rule, settings);
}
