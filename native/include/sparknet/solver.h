/*
 * The updates of Caffe's solvers, each in one pass over a net's flat buffers.
 *
 * For every value of every parameter, in this order and rounded after each operation as
 * Caffe rounds (sgd_solver.cpp, ApplyUpdate):
 *
 *     gradient = gradient clip                     when gradients are clipped
 *     gradient = gradient share                    share = 1 / iter_size
 *     gradient = gradient + decay term             term: the weight (L2) or its sign (L1)
 *     gradient = the solver's rule (below), which may read and change histories
 *     weight   = weight - gradient
 *
 * Afterwards the gradient's buffer holds what was subtracted. Work is shared among threads;
 * the result does not depend on their number.
 *
 * In the rules below rate is the parameter's own: the base rate times its factor.
 */
#ifndef SPARKNET_SOLVER_H
#define SPARKNET_SOLVER_H

#include <sparknet/ndarray.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sn_step {
    /*
     * float32, without gaps, of one size, none overlapping another. A rule that does not use a
     * history ignores it: it may be NULL.
     */
    sn_array *weights, *gradient, *history, *history2;
    /*
     * `count` parameters lie one after the other: parameter i ends before element ends[i] and has
     * its own factors for the rate and for the decay.
     */
    int count;
    const int64_t* ends;
    const float *rate_factors, *decay_factors;
    /* For all parameters. clip and share are 1 when they change nothing. */
    float rate, decay, clip, share;
    /* 1: the decay term is the weight's sign; 0: the weight. */
    int l1;
} sn_step;

/* history = momentum history + rate gradient; gradient = history */
SN_API sn_status sn_sgd_step(const sn_step* step, float momentum);

/*
 * old = history; history = momentum history + rate gradient;
 * gradient = (1 + momentum) history - momentum old
 */
SN_API sn_status sn_nesterov_step(const sn_step* step, float momentum);

/* history = history + gradient^2; gradient = rate (gradient / (sqrt(history) + delta)) */
SN_API sn_status sn_adagrad_step(const sn_step* step, float delta);

/*
 * history = decay history + (1 - decay) gradient^2;
 * gradient = rate (gradient / (sqrt(history) + delta))
 */
SN_API sn_status sn_rmsprop_step(const sn_step* step, float decay, float delta);

/*
 * history = momentum history + (1 - momentum) gradient^2;
 * change = gradient sqrt((delta + history2) / (delta + history));
 * history2 = momentum history2 + (1 - momentum) change^2; gradient = rate change
 */
SN_API sn_status sn_adadelta_step(const sn_step* step, float momentum, float delta);

/*
 * history = momentum history + (1 - momentum) gradient;
 * history2 = momentum2 history2 + (1 - momentum2) gradient^2;
 * gradient = (rate correction) (history / (sqrt(history2) + delta))
 */
SN_API sn_status sn_adam_step(const sn_step* step, float momentum, float momentum2, float delta,
                              float correction);

/*
 * The same, with decoupled decay (Loshchilov and Hutter, 2019): no decay term is added to the
 * gradient; before the rule weight = weight - rate decay weight, which the gradient's buffer does
 * not hold. l1 is ignored.
 */
SN_API sn_status sn_adamw_step(const sn_step* step, float momentum, float momentum2, float delta,
                               float correction);

#ifdef __cplusplus
}
#endif

#endif
