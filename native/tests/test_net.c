/* The engine's nets from C: building, passes, shapes, views, refusals, threads. */
#include <math.h>
#include <pthread.h>
#include <sparknet/engine.h>
#include <sparknet/net.h>
#include <string.h>

#include "expect.h"

#define WHOLE(...)  \
    (int64_t[]) {   \
        __VA_ARGS__ \
    }
#define NUMBERS(...) \
    (int[]) {        \
        __VA_ARGS__  \
    }
#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

enum { NONE = -1 };

static sn_net* new_net(int train) {
    sn_net* net = NULL;
    SUCCEEDS(sn_net_create(&net, train, 7));
    return net;
}

static int blob(sn_net* net, const char* name, int ndim, const int64_t* shape) {
    int made = NONE;
    SUCCEEDS(sn_net_add_blob(&made, net, name));
    SUCCEEDS(sn_net_reshape_blob(net, made, ndim, shape));
    return made;
}

static int param(sn_net* net, int ndim, const int64_t* shape, float value) {
    sn_array *data = made(SN_FLOAT32, ndim, shape), *diff = made(SN_FLOAT32, ndim, shape);
    SUCCEEDS(sn_array_fill(data, value));
    int number = NONE;
    SUCCEEDS(sn_net_add_param(&number, net, data, diff));
    sn_array_free(data);
    sn_array_free(diff);
    return number;
}

static int layer(sn_net* net, const char* type, int bottom, int top, int params,
                 const int* numbers) {
    int made = NONE;
    SUCCEEDS(sn_net_add_layer(&made, net, type, type, bottom != NONE, &bottom, top != NONE, &top,
                              params, numbers));
    const uint8_t yes[] = {1, 1, 1, 1};
    SUCCEEDS(sn_layer_set_gradients(net, made, bottom != NONE, yes, yes));
    return made;
}

static void whole(sn_net* net, int number, const char* key, int64_t value) {
    SUCCEEDS(sn_layer_set_integers(net, number, key, 1, &value));
}

static void pair(sn_net* net, int number, const char* key, int64_t value) {
    SUCCEEDS(sn_layer_set_integers(net, number, key, 2, WHOLE(value, value)));
}

static void real(sn_net* net, int number, const char* key, double value) {
    SUCCEEDS(sn_layer_set_reals(net, number, key, 1, &value));
}

static sn_array* values(sn_net* net, int number, int diff) {
    sn_array* array = NULL;
    SUCCEEDS(sn_net_blob_array(&array, net, number, diff));
    return array;
}

static float value(sn_net* net, int number, int diff, int64_t at) {
    sn_array* array = values(net, number, diff);
    const float found = floats(array)[at];
    sn_array_free(array);
    return found;
}

static void fill(sn_net* net, int number, int diff, float with) {
    sn_array* array = values(net, number, diff);
    SUCCEEDS(sn_array_fill(array, with));
    sn_array_free(array);
}

static double forward(sn_net* net, int first, int last) {
    double loss = NAN;
    SUCCEEDS(sn_net_forward(&loss, net, first, last));
    return loss;
}

/* data (n, 3, 8, 8) -> 1: Convolution of 20 outputs, 3 x 3 -> ReLU in place -> InnerProduct 5. */
enum { DATA, MIDDLE, OUT, BLOBS };
enum { INPUT, CONVOLUTION, RELU, PRODUCT, LAYERS };

static sn_net* small_net(int train, int64_t batch) {
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

static void resize_small(sn_net* net, int64_t batch) {
    SUCCEEDS(sn_net_reshape_blob(net, DATA, 4, SHAPE(batch, 3, 8, 8)));
    SUCCEEDS(sn_net_reshape_blob(net, MIDDLE, 4, SHAPE(batch, 20, 6, 6)));
    SUCCEEDS(sn_net_reshape_blob(net, OUT, 2, SHAPE(batch, 5)));
}

/* With data all 2: 27 x 0.5 x 2 - 1 = 26 in the middle, 720 x 26 + 2 = 18722 at the end. */
static void expect_small(sn_net* net, int64_t batch) {
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

static void passes_and_shapes(void) {
    for (int train = 0; train < 2; ++train) {
        sn_net* net = small_net(train, 2);
        expect_small(net, 2);
        const int64_t batches[] = {1, 7, 0, 3, 2, 0, 33, 2};
        for (int i = 0; i < COUNT(batches); ++i) {
            resize_small(net, batches[i]);
            SUCCEEDS(sn_net_prepare(net, 0, LAYERS - 1));
            expect_small(net, batches[i]);
        }
        sn_net_free(net);
    }
}

/* What was not prepared for its shapes does not run; once prepared it does. */
static void stale_shapes_are_refused(void) {
    sn_net* net = small_net(1, 2);
    double loss = 5;
    resize_small(net, 40);
    EXPECT(sn_net_forward(&loss, net, 0, LAYERS - 1) == SN_ERROR_LAYER);
    EXPECT(sn_net_failed_layer(net) == INPUT && loss == 5);
    EXPECT(strstr(sn_message(), "Input: was not prepared") != NULL);
    EXPECT(sn_net_backward(net, LAYERS - 1, 0, 0) == SN_ERROR_LAYER);
    EXPECT(sn_net_failed_layer(net) == PRODUCT);
    SUCCEEDS(sn_net_prepare(net, 0, LAYERS - 1));
    EXPECT(sn_net_failed_layer(net) == NONE);
    expect_small(net, 40);
    /* So do options that have changed. */
    whole(net, PRODUCT, "bias_term", 0);
    EXPECT(sn_net_forward(&loss, net, PRODUCT, PRODUCT) == SN_ERROR_LAYER);
    SUCCEEDS(sn_net_prepare(net, PRODUCT, PRODUCT));
    forward(net, 0, LAYERS - 1);
    EXPECT(value(net, OUT, 0, 0) == 18720);
    sn_net_free(net);
}

/* In the test phase ReLU is computed with the convolution, unless the pass ends before it. */
static void fused(void) {
    sn_net* net = small_net(0, 2);
    sn_array* middle = values(net, MIDDLE, 0);
    fill(net, DATA, 0, -2);
    forward(net, 0, CONVOLUTION);
    EXPECT(floats(middle)[0] == -28);
    forward(net, RELU, RELU);
    EXPECT(floats(middle)[0] == 0);
    forward(net, 0, RELU);
    EXPECT(floats(middle)[0] == 0);
    forward(net, CONVOLUTION, CONVOLUTION);
    forward(net, RELU, LAYERS - 1);
    EXPECT(floats(middle)[1439] == 0 && value(net, OUT, 0, 9) == 2);
    /* Values written by hand in between count. */
    SUCCEEDS(sn_array_fill(middle, 1));
    forward(net, RELU, LAYERS - 1);
    EXPECT(value(net, OUT, 0, 9) == 722);
    sn_array_free(middle);
    sn_net_free(net);
}

static void views_outlive_nets(void) {
    sn_net* net = small_net(1, 2);
    sn_array *data = values(net, DATA, 0), *out = values(net, OUT, 0);
    SUCCEEDS(sn_array_fill(data, 2));
    forward(net, 0, LAYERS - 1);
    EXPECT(floats(out)[9] == 18722);
    SUCCEEDS(sn_array_fill(data, 0));
    forward(net, 0, LAYERS - 1);
    EXPECT(floats(out)[9] == 2);
    /* A view stays on a blob that shrinks, and is cut off from one that grows. */
    resize_small(net, 1);
    SUCCEEDS(sn_net_prepare(net, 0, LAYERS - 1));
    SUCCEEDS(sn_array_fill(data, 2));
    forward(net, 0, LAYERS - 1);
    EXPECT(floats(out)[0] == 18722);
    resize_small(net, 50);
    SUCCEEDS(sn_net_prepare(net, 0, LAYERS - 1));
    forward(net, 0, LAYERS - 1);
    EXPECT(floats(out)[0] == 18722 && value(net, OUT, 0, 249) == 2);
    sn_net_free(net);
    EXPECT(floats(out)[0] == 18722 && floats(data)[0] == 2);
    SUCCEEDS(sn_array_fill(out, 3));
    sn_array_free(data);
    sn_array_free(out);
}

static void shared_parameters(void) {
    sn_net* net = small_net(1, 1);
    sn_array *zeros = made(SN_FLOAT32, 2, SHAPE(5, 720)), *wrong = made(SN_FLOAT32, 2, SHAPE(5, 7));
    EXPECT(sn_net_share_param(net, 2, wrong) == SN_ERROR_INDEX);
    EXPECT(sn_net_share_param(net, 4, zeros) == SN_ERROR_INDEX);
    SUCCEEDS(sn_net_share_param(net, 2, zeros));
    double loss = 0;
    EXPECT(sn_net_forward(&loss, net, PRODUCT, PRODUCT) == SN_ERROR_LAYER);
    SUCCEEDS(sn_net_prepare(net, 0, LAYERS - 1));
    forward(net, 0, LAYERS - 1);
    EXPECT(value(net, OUT, 0, 4) == 2);
    fill(net, DATA, 0, 2);
    SUCCEEDS(sn_array_fill(zeros, 1));
    sn_array_free(zeros);
    sn_array_free(wrong);
    forward(net, 0, LAYERS - 1);
    EXPECT(value(net, OUT, 0, 4) == 18722);
    sn_net_free(net);
}

static void wrong_numbers(void) {
    sn_net* net = small_net(1, 1);
    double loss = 0;
    int out = NONE;
    sn_array* view = NULL;
    const int wrong[] = {-1, 99, INT32_MAX, INT32_MIN};
    for (int i = 0; i < COUNT(wrong); ++i) {
        const int it = wrong[i];
        EXPECT(sn_net_forward(&loss, net, it, 0) == SN_ERROR_INDEX);
        EXPECT(sn_net_forward(&loss, net, 0, it) == SN_ERROR_INDEX);
        EXPECT(sn_net_backward(net, it, 0, 0) == SN_ERROR_INDEX);
        EXPECT(sn_net_backward(net, 0, it, 0) == SN_ERROR_INDEX);
        EXPECT(sn_net_prepare(net, 0, it) == SN_ERROR_INDEX);
        EXPECT(sn_net_reshape_blob(net, it, 1, SHAPE(1)) == SN_ERROR_INDEX);
        EXPECT(sn_net_blob_array(&view, net, it, 0) == SN_ERROR_INDEX && view == NULL);
        EXPECT(sn_net_blob_shape(&out, (int64_t[32]){0}, net, it) == SN_ERROR_INDEX);
        EXPECT(sn_layer_set_integers(net, it, "a", 0, NULL) == SN_ERROR_INDEX);
        EXPECT(sn_layer_set_text(net, it, "a", "b") == SN_ERROR_INDEX);
        EXPECT(sn_layer_set_gradients(net, it, 0, NULL, NULL) == SN_ERROR_INDEX);
        EXPECT(sn_layer_set_loss_weights(net, it, NULL) == SN_ERROR_INDEX);
        EXPECT(sn_net_add_layer(&out, net, "ReLU", "r", 1, &it, 0, NULL, 0, NULL) ==
               SN_ERROR_INDEX);
        EXPECT(sn_net_add_layer(&out, net, "ReLU", "r", 0, NULL, 0, NULL, 1, &it) ==
               SN_ERROR_INDEX);
        EXPECT(sn_kernel_type(it < 99 ? it : 9999) == NULL);
    }
    EXPECT(out == NONE);
    EXPECT(sn_net_add_layer(&out, net, "ReLU", "r", -1, NULL, 0, NULL, 0, NULL) == SN_ERROR_ARRAY);
    EXPECT(sn_layer_set_reals(net, 0, "a", -3, NULL) == SN_ERROR_ARRAY);
    EXPECT(sn_net_reshape_blob(net, DATA, 33, SHAPE(0)) == SN_ERROR_INDEX);
    EXPECT(sn_net_reshape_blob(net, DATA, -1, NULL) == SN_ERROR_INDEX);
    EXPECT(sn_net_reshape_blob(net, DATA, 2, SHAPE(3, -1)) == SN_ERROR_ARRAY);
    EXPECT(sn_net_reshape_blob(net, DATA, 2, SHAPE(INT64_MAX, 3)) == SN_ERROR_MEMORY);
    /* First behind last is an empty pass. */
    EXPECT(forward(net, 3, 1) == 0);
    SUCCEEDS(sn_net_backward(net, 1, 3, 0));
    expect_small(net, 1);
    sn_array* integers = made(SN_INT32, 1, SHAPE(3));
    sn_array* three = made(SN_FLOAT32, 1, SHAPE(3));
    sn_array* four = made(SN_FLOAT32, 1, SHAPE(4));
    EXPECT(sn_net_add_param(&out, net, integers, three) == SN_ERROR_INDEX);
    EXPECT(sn_net_add_param(&out, net, three, four) == SN_ERROR_INDEX);
    sn_array_free(integers);
    sn_array_free(three);
    sn_array_free(four);
    sn_net_free(net);
    sn_net_free(NULL);
}

/* A layer that is refused does not spoil the others. */
static void refused_layers(void) {
    sn_net* net = small_net(1, 1);
    const int unknown = layer(net, "NoSuchLayer", OUT, OUT, 0, NULL);
    const int bare = layer(net, "InnerProduct", OUT, OUT, 0, NULL);
    EXPECT(sn_net_prepare(net, 0, unknown) == SN_ERROR_LAYER);
    EXPECT(sn_net_failed_layer(net) == unknown);
    EXPECT(strstr(sn_message(), "NoSuchLayer: the engine has no such layer") != NULL);
    EXPECT(sn_net_prepare(net, bare, bare) == SN_ERROR_LAYER);
    EXPECT(strstr(sn_message(), "option 'axis' was not resolved") != NULL);
    double loss = 0;
    EXPECT(sn_net_forward(&loss, net, 0, bare) == SN_ERROR_LAYER);
    EXPECT(sn_net_failed_layer(net) == unknown);
    EXPECT(sn_net_backward(net, bare, 0, 0) == SN_ERROR_LAYER);
    EXPECT(sn_net_failed_layer(net) == bare);
    expect_small(net, 1);
    sn_net_free(net);
    /* Nothing is there yet. */
    net = new_net(0);
    EXPECT(sn_net_prepare(net, 0, 0) == SN_ERROR_INDEX);
    EXPECT(sn_net_forward(&loss, net, 0, 0) == SN_ERROR_INDEX);
    sn_net_free(net);
}

/* A view is true after a pass that ended early, and what is written into it then counts. */
static void views_after_a_refusal(void) {
    sn_net* net = small_net(1, 1);
    sn_array *data = values(net, DATA, 0), *middle = values(net, MIDDLE, 0);
    const int refused = layer(net, "NoSuchLayer", OUT, OUT, 0, NULL);
    double loss = 0;
    for (int turn = 1; turn < 4; ++turn) {
        SUCCEEDS(sn_array_fill(data, (float)turn));
        EXPECT(sn_net_forward(&loss, net, 0, refused) == SN_ERROR_LAYER);
        EXPECT(floats(middle)[5] == 13.5F * (float)turn - 1);
    }
    sn_array_free(data);
    sn_array_free(middle);
    sn_net_free(net);
}

/* Kernels of one blob, over several shapes, and backward before there was a forward. */
static void kernels_of_one_blob(void) {
    static const char* const types[] = {"AbsVal",  "BNLL",  "Clip",  "Dropout", "ELU",   "Exp",
                                        "Log",     "MVN",   "Power", "ReLU",    "ReLU6", "Sigmoid",
                                        "Softmax", "Split", "Swish", "TanH"};
    static const char* const numbers[] = {
        "negative_slope", "alpha",      "beta",        "base",        "scale",
        "shift",          "power",      "ratio",       "min",         "max",
        "threshold",      "eps",        "inner_scale", "outer_scale", "diff_scale",
        "log_base",       "base_scale", "input_scale", "input_shift"};
    const int64_t shapes[][4] = {{2, 3, 4, 5}, {0, 3, 4, 5}, {1, 1, 1, 1}};
    for (int t = 0; t < COUNT(types); ++t)
        for (int s = 0; s < COUNT(shapes); ++s) {
            sn_net* net = new_net(1);
            const int64_t* shape = shapes[s];
            blob(net, "bottom", 4, shape);
            blob(net, "top", 4, shape);
            const int number = layer(net, types[t], 0, 1, 0, NULL);
            for (int i = 0; i < COUNT(numbers); ++i) real(net, number, numbers[i], 0.5);
            whole(net, number, "train", 1);
            whole(net, number, "axis", 1);
            whole(net, number, "outer", shape[0]);
            whole(net, number, "channels", shape[1]);
            whole(net, number, "inner", shape[2] * shape[3]);
            whole(net, number, "normalize_variance", 1);
            whole(net, number, "across_channels", 0);
            SUCCEEDS(sn_net_prepare(net, 0, 0));
            for (int turn = 0; turn < 2; ++turn) {
                SUCCEEDS(sn_net_backward(net, 0, 0, 0));
                forward(net, 0, 0);
            }
            sn_net_free(net);
        }
}

/* Every kernel there is refuses to be made over no blobs at all, or has nothing to do. */
static void kernels_without_blobs(void) {
    const char* type = NULL;
    for (int i = 0; (type = sn_kernel_type(i)) != NULL; ++i) {
        sn_net* net = new_net(1);
        int number = NONE;
        SUCCEEDS(sn_net_add_layer(&number, net, type, type, 0, NULL, 0, NULL, 0, NULL));
        const sn_status status = sn_net_prepare(net, 0, 0);
        EXPECT(status == SN_OK || status == SN_ERROR_LAYER);
        sn_net_free(net);
    }
}

static int relu_net(sn_net** net, int ndim, const int64_t* shape) {
    *net = new_net(1);
    blob(*net, "values", ndim, shape);
    blob(*net, "positive", ndim, shape);
    real(*net, layer(*net, "ReLU", 0, 1, 0, NULL), "negative_slope", 0);
    SUCCEEDS(sn_net_prepare(*net, 0, 0));
    return 1;
}

static void odd_shapes(void) {
    sn_net* net = NULL;
    int64_t many[32];
    for (int i = 0; i < 32; ++i) many[i] = i % 7 == 0 ? 2 : 1;
    const struct {
        int ndim;
        const int64_t* shape;
    } cases[] = {{0, NULL}, {13, many}, {32, many}, {1, SHAPE(0)}, {3, SHAPE(3, 0, 4)}};
    for (int i = 0; i < COUNT(cases); ++i) {
        relu_net(&net, cases[i].ndim, cases[i].shape);
        int ndim = NONE;
        int64_t shape[32];
        SUCCEEDS(sn_net_blob_shape(&ndim, shape, net, 1));
        EXPECT(ndim == cases[i].ndim);
        fill(net, 0, 0, -3);
        forward(net, 0, 0);
        fill(net, 1, 1, 1);
        SUCCEEDS(sn_net_backward(net, 0, 0, 0));
        sn_array* view = values(net, 0, 1);
        sn_layout layout;
        sn_array_describe(&layout, view);
        for (int64_t k = 0; k < layout.size; ++k) EXPECT(floats(view)[k] == 0);
        sn_array_free(view);
        sn_net_free(net);
    }
}

/* Memory is taken when values are looked at: a blob larger than any machine may be described. */
static void huge_shapes(void) {
    sn_net* net = NULL;
    relu_net(&net, 4, SHAPE(1 << 20, 1 << 20, 1 << 10, 1));
    sn_array* view = NULL;
    double loss = 0;
    EXPECT(sn_net_blob_array(&view, net, 0, 0) == SN_ERROR_MEMORY && view == NULL);
    EXPECT(sn_net_forward(&loss, net, 0, 0) == SN_ERROR_MEMORY);
    EXPECT(sn_net_backward(net, 0, 0, 0) == SN_ERROR_MEMORY);
    EXPECT(sn_net_failed_layer(net) == NONE);
    SUCCEEDS(sn_net_reshape_blob(net, 0, 1, SHAPE(3)));
    SUCCEEDS(sn_net_reshape_blob(net, 1, 1, SHAPE(3)));
    SUCCEEDS(sn_net_prepare(net, 0, 0));
    fill(net, 0, 0, 4);
    forward(net, 0, 0);
    EXPECT(value(net, 1, 0, 2) == 4);
    sn_net_free(net);
}

/* Blobs that share their values may be given sizes that differ: no reader leaves the memory. */
static void shared_values(void) {
    for (int touched = 0; touched < 2; ++touched) {
        sn_net* net = new_net(1);
        blob(net, "in", 1, SHAPE(50));
        blob(net, "copy", 1, SHAPE(50));
        layer(net, "Split", 0, 1, 0, NULL);
        SUCCEEDS(sn_net_prepare(net, 0, 0));
        if (touched) fill(net, 0, 0, 3);
        SUCCEEDS(sn_net_reshape_blob(net, 0, 1, SHAPE(5)));
        EXPECT(value(net, 1, 0, 49) == (touched ? 3 : 0));
        SUCCEEDS(sn_net_reshape_blob(net, 0, 1, SHAPE(500)));
        EXPECT(sn_net_prepare(net, 0, 0) == SN_ERROR_LAYER);
        EXPECT(strstr(sn_message(), "Split: blobs that share their values differ in size") != NULL);
        fill(net, 0, 0, 4);
        SUCCEEDS(sn_net_reshape_blob(net, 1, 1, SHAPE(500)));
        SUCCEEDS(sn_net_prepare(net, 0, 0));
        EXPECT(value(net, 1, 0, 499) == 4);
        sn_net_free(net);
    }
}

/* Nothing but the blobs in use takes memory; alternating shapes and layouts take no more. */
static void memory_is_bounded(void) {
    sn_net* net = small_net(1, 4);
    sn_net_bytes at_first, now;
    SUCCEEDS(sn_net_memory(&at_first, net));
    EXPECT(at_first.rows == 0 && at_first.layouts == 0);
    expect_small(net, 4);
    SUCCEEDS(sn_net_memory(&at_first, net));
    for (int turn = 0; turn < 10; ++turn)
        for (int64_t batch = 1; batch <= 4; ++batch) {
            resize_small(net, batch);
            SUCCEEDS(sn_net_prepare(net, 0, LAYERS - 1));
            expect_small(net, batch);
        }
    SUCCEEDS(sn_net_memory(&now, net));
    EXPECT(now.rows <= at_first.rows && now.layouts <= at_first.layouts);
    sn_net_free(net);
}

static void random_numbers_start_anew(void) {
    float first[64];
    for (int turn = 0; turn < 3; ++turn) {
        sn_net* net = new_net(1);
        blob(net, "in", 1, SHAPE(64));
        blob(net, "out", 1, SHAPE(64));
        const int dropout = layer(net, "Dropout", 0, 1, 0, NULL);
        whole(net, dropout, "train", 1);
        real(net, dropout, "ratio", 0.5);
        real(net, dropout, "scale", 2);
        SUCCEEDS(sn_set_threads(1 + turn));
        SUCCEEDS(sn_net_prepare(net, 0, 0));
        if (turn == 2) {
            forward(net, 0, 0);
            SUCCEEDS(sn_net_seed(net, 7));
        }
        fill(net, 0, 0, 1);
        forward(net, 0, 0);
        sn_array* out = values(net, 1, 0);
        if (turn == 0) memcpy(first, floats(out), sizeof first);
        EXPECT(memcmp(first, floats(out), sizeof first) == 0);
        forward(net, 0, 0);
        EXPECT(memcmp(first, floats(out), sizeof first) != 0);
        sn_array_free(out);
        sn_net_free(net);
    }
    SUCCEEDS(sn_set_threads(2));
}

/* ---- Threads -------------------------------------------------------------------- */

static void* run_own_net(void* nothing) {
    for (int turn = 0; turn < 3; ++turn) {
        sn_net* net = small_net(turn % 2, 3);
        for (int i = 0; i < 5; ++i) expect_small(net, 3);
        sn_net_free(net);
    }
    return nothing;
}

static void* run_shared_net(void* shared) {
    for (int i = 0; i < 20; ++i) {
        forward(shared, 0, LAYERS - 1);
        SUCCEEDS(sn_net_backward(shared, LAYERS - 1, 0, 0));
        EXPECT(value(shared, OUT, 0, 14) == 18722);
    }
    return NULL;
}

/* This thread's failures are its own: the other one runs on. */
static void* fail_on_shared_net(void* shared) {
    double loss = 0;
    for (int i = 0; i < 200; ++i) {
        EXPECT(sn_net_forward(&loss, shared, LAYERS, LAYERS) == SN_ERROR_LAYER);
        EXPECT(sn_net_failed_layer(shared) == LAYERS);
        EXPECT(strstr(sn_message(), "NoSuchLayer") != NULL);
    }
    return NULL;
}

static void* change_threads(void* nothing) {
    for (int i = 0; i < 300; ++i) SUCCEEDS(sn_set_threads(1 + i % 3));
    SUCCEEDS(sn_set_threads(2));
    return nothing;
}

static void in_threads(int count, void* (*const bodies[])(void*), void* context) {
    pthread_t threads[4];
    for (int i = 0; i < count; ++i)
        EXPECT(pthread_create(&threads[i], NULL, bodies[i], context) == 0);
    for (int i = 0; i < count; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
}

static void* forward_only(void* shared) {
    for (int i = 0; i < 20; ++i) {
        forward(shared, 0, LAYERS - 1);
        EXPECT(value(shared, OUT, 0, 14) == 18722);
    }
    return NULL;
}

static void threads(void) {
    in_threads(2, (void* (*const[])(void*)){run_own_net, run_own_net}, NULL);
    sn_net* net = small_net(1, 3);
    fill(net, DATA, 0, 2);
    in_threads(2, (void* (*const[])(void*)){run_shared_net, run_shared_net}, net);
    layer(net, "NoSuchLayer", OUT, OUT, 0, NULL);
    in_threads(3, (void* (*const[])(void*)){run_shared_net, fail_on_shared_net, fail_on_shared_net},
               net);
    in_threads(3, (void* (*const[])(void*)){forward_only, change_threads, forward_only}, net);
    sn_net_free(net);
}

/* Made here, run there, freed elsewhere. */
static void* make_small(void* out) {
    *(sn_net**)out = small_net(1, 3);
    return NULL;
}

static void* use_small(void* in) {
    expect_small(*(sn_net**)in, 3);
    return NULL;
}

static void* free_small(void* in) {
    sn_net_free(*(sn_net**)in);
    return NULL;
}

static void nets_move_between_threads(void) {
    sn_net* net = NULL;
    in_threads(1, (void* (*const[])(void*)){make_small}, &net);
    in_threads(1, (void* (*const[])(void*)){use_small}, &net);
    use_small(&net);
    in_threads(1, (void* (*const[])(void*)){free_small}, &net);
}

int main(void) {
    SUCCEEDS(sn_set_threads(2));
    passes_and_shapes();
    stale_shapes_are_refused();
    fused();
    views_outlive_nets();
    shared_parameters();
    wrong_numbers();
    refused_layers();
    views_after_a_refusal();
    kernels_of_one_blob();
    kernels_without_blobs();
    odd_shapes();
    huge_shapes();
    shared_values();
    memory_is_bounded();
    random_numbers_start_anew();
    threads();
    nets_move_between_threads();
    EXPECT(sn_live_storages() == 0);
    return 0;
}
