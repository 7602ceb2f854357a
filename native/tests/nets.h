/* Nets that the C tests build, run and look at. */
#ifndef SPARKNET_TESTS_NETS_H
#define SPARKNET_TESTS_NETS_H

#include <math.h>
#include <sparknet/engine.h>
#include <sparknet/net.h>

#include "expect.h"

#define WHOLE(...)  \
    (int64_t[]) {   \
        __VA_ARGS__ \
    }
#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { NONE = -1 };

static inline sn_net* new_net(int train) {
    sn_net* net = NULL;
    SUCCEEDS(sn_net_create(&net, train, 7));
    return net;
}

static inline int blob(sn_net* net, const char* name, int ndim, const int64_t* shape) {
    int made = NONE;
    SUCCEEDS(sn_net_add_blob(&made, net, name));
    SUCCEEDS(sn_net_reshape_blob(net, made, ndim, shape));
    return made;
}

static inline int param(sn_net* net, int ndim, const int64_t* shape, float value) {
    sn_array *data = made(SN_FLOAT32, ndim, shape), *diff = made(SN_FLOAT32, ndim, shape);
    SUCCEEDS(sn_array_fill(data, value));
    int number = NONE;
    SUCCEEDS(sn_net_add_param(&number, net, data, diff));
    sn_array_free(data);
    sn_array_free(diff);
    return number;
}

static inline int layer(sn_net* net, const char* type, int bottom, int top, int params,
                        const int* numbers) {
    int made = NONE;
    SUCCEEDS(sn_net_add_layer(&made, net, type, type, bottom != NONE, &bottom, top != NONE, &top,
                              params, numbers));
    const uint8_t yes[] = {1, 1, 1, 1};
    SUCCEEDS(sn_layer_set_gradients(net, made, bottom != NONE, yes, yes));
    return made;
}

static inline void whole(sn_net* net, int number, const char* key, int64_t value) {
    SUCCEEDS(sn_layer_set_integers(net, number, key, 1, &value));
}

static inline void pair(sn_net* net, int number, const char* key, int64_t value) {
    SUCCEEDS(sn_layer_set_integers(net, number, key, 2, WHOLE(value, value)));
}

static inline void real(sn_net* net, int number, const char* key, double value) {
    SUCCEEDS(sn_layer_set_reals(net, number, key, 1, &value));
}

static inline sn_array* values(sn_net* net, int number, int diff) {
    sn_array* array = NULL;
    SUCCEEDS(sn_net_blob_array(&array, net, number, diff));
    return array;
}

static inline float value(sn_net* net, int number, int diff, int64_t at) {
    sn_array* array = values(net, number, diff);
    const float found = floats(array)[at];
    sn_array_free(array);
    return found;
}

static inline void fill(sn_net* net, int number, int diff, float with) {
    sn_array* array = values(net, number, diff);
    SUCCEEDS(sn_array_fill(array, with));
    sn_array_free(array);
}

static inline double forward(sn_net* net, int first, int last) {
    double loss = NAN;
    SUCCEEDS(sn_net_forward(&loss, net, first, last));
    return loss;
}

/* data (n, 3, 8, 8) -> Convolution of 20 outputs, 3 x 3 -> ReLU in place -> InnerProduct of 5. */
enum { DATA, MIDDLE, OUT };
enum { INPUT, CONVOLUTION, RELU, PRODUCT, LAYERS };

static inline sn_net* small_net(int train, int64_t batch) {
    sn_net* net = new_net(train);
    blob(net, "data", 4, SHAPE(batch, 3, 8, 8));
    blob(net, "middle", 4, SHAPE(batch, 20, 6, 6));
    blob(net, "out", 2, SHAPE(batch, 5));
    const int own[] = {param(net, 4, SHAPE(20, 3, 3, 3), 0.5F), param(net, 1, SHAPE(20), -1),
                       param(net, 2, SHAPE(5, 720), 1), param(net, 1, SHAPE(5), 2)};
    layer(net, "Input", NONE, DATA, 0, NULL);
    const int convolution = layer(net, "Convolution", DATA, MIDDLE, 2, own);
    whole(net, convolution, "axis", 1);
    whole(net, convolution, "group", 1);
    whole(net, convolution, "num_output", 20);
    whole(net, convolution, "bias_term", 1);
    pair(net, convolution, "kernel", 3);
    pair(net, convolution, "stride", 1);
    pair(net, convolution, "pad", 0);
    pair(net, convolution, "dilation", 1);
    real(net, layer(net, "ReLU", MIDDLE, MIDDLE, 0, NULL), "negative_slope", 0);
    const int product = layer(net, "InnerProduct", MIDDLE, OUT, 2, own + 2);
    whole(net, product, "axis", 1);
    whole(net, product, "num_output", 5);
    whole(net, product, "transpose", 0);
    whole(net, product, "bias_term", 1);
    SUCCEEDS(sn_net_prepare(net, 0, LAYERS - 1));
    return net;
}

static inline void resize_small(sn_net* net, int64_t batch) {
    SUCCEEDS(sn_net_reshape_blob(net, DATA, 4, SHAPE(batch, 3, 8, 8)));
    SUCCEEDS(sn_net_reshape_blob(net, MIDDLE, 4, SHAPE(batch, 20, 6, 6)));
    SUCCEEDS(sn_net_reshape_blob(net, OUT, 2, SHAPE(batch, 5)));
}

/* With data all 2: 27 x 0.5 x 2 - 1 = 26 in the middle, 720 x 26 + 2 = 18722 at the end. */
static inline void expect_small(sn_net* net, int64_t batch) {
    fill(net, DATA, 0, 2);
    EXPECT(forward(net, 0, LAYERS - 1) == 0);
    for (int64_t i = 0; i < batch * 5; ++i) EXPECT(value(net, OUT, 0, i) == 18722);
    fill(net, OUT, 1, 1);
    SUCCEEDS(sn_net_backward(net, LAYERS - 1, 0, 0));
    if (batch > 0) {
        EXPECT(value(net, MIDDLE, 0, batch * 720 - 1) == 26);
        EXPECT(value(net, MIDDLE, 1, 0) == 5);
        /* The corner feeds one window of each of 20 outputs. */
        EXPECT(value(net, DATA, 1, 0) == 20 * 0.5F * 5);
    }
}

/* values -> ReLU -> positive. */
static inline sn_net* relu_net(int ndim, const int64_t* shape) {
    sn_net* net = new_net(1);
    blob(net, "values", ndim, shape);
    blob(net, "positive", ndim, shape);
    real(net, layer(net, "ReLU", 0, 1, 0, NULL), "negative_slope", 0);
    SUCCEEDS(sn_net_prepare(net, 0, 0));
    return net;
}

#endif
