/* What all solvers do around their rules. */
#ifndef SPARKNET_STEP_H
#define SPARKNET_STEP_H

#include <math.h>
#include <sparknet/solver.h>

#include "../ndarray/kernel.h"

enum { SN_MOST_HISTORIES = 2 };

/* A stretch of one parameter, short enough to stay in the nearest cache. */
typedef struct sn_stretch {
    float *weights, *gradient, *history[SN_MOST_HISTORIES];
    int64_t count;
    float rate;
} sn_stretch;

/* Replaces the gradient by the step and takes it from the weights. */
typedef void (*sn_rule)(const sn_stretch* stretch, const float* settings);

/* Checks the step, prepares the gradient, and applies the rule to all parameters. */
sn_status sn_take_step(const sn_step* step, int histories, sn_rule rule, const float* settings);

/* The same, with the decay apart from the gradient. */
sn_status sn_take_decoupled_step(const sn_step* step, int histories, sn_rule rule,
                                 const float* settings);

#endif
