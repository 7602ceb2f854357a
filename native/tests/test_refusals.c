/* What nets refuse: numbers that name nothing, unknown layers, sizes beyond memory. */
#include <string.h>

#include "nets.h"

/* Numbers of layers and blobs that are not there. */
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
    expect_small(net, 1);
    sn_net_free(net);
}

static void wrong_counts(void) {
    sn_net* net = small_net(1, 1);
    int out = NONE;
    EXPECT(sn_net_add_layer(&out, net, "ReLU", "r", -1, NULL, 0, NULL, 0, NULL) == SN_ERROR_ARRAY);
    EXPECT(sn_layer_set_reals(net, 0, "a", -3, NULL) == SN_ERROR_ARRAY);
    EXPECT(sn_net_reshape_blob(net, DATA, 33, SHAPE(0)) == SN_ERROR_ARRAY);
    EXPECT(sn_net_reshape_blob(net, DATA, -1, NULL) == SN_ERROR_ARRAY);
    EXPECT(sn_net_reshape_blob(net, DATA, 2, SHAPE(3, -1)) == SN_ERROR_ARRAY);
    EXPECT(sn_net_reshape_blob(net, DATA, 2, SHAPE(INT64_MAX, 3)) == SN_ERROR_MEMORY);
    EXPECT(out == NONE);
    /* First behind last is an empty pass. */
    EXPECT(forward(net, 3, 1) == 0);
    SUCCEEDS(sn_net_backward(net, 1, 3, 0));
    expect_small(net, 1);
    sn_net_free(net);
    sn_net_free(NULL);
}

static void wrong_parameters(void) {
    sn_net* net = new_net(1);
    int out = NONE;
    sn_array* integers = made(SN_INT32, 1, SHAPE(3));
    sn_array* three = made(SN_FLOAT32, 1, SHAPE(3));
    sn_array* four = made(SN_FLOAT32, 1, SHAPE(4));
    EXPECT(sn_net_add_param(&out, net, integers, three) == SN_ERROR_ARRAY);
    EXPECT(sn_net_add_param(&out, net, three, four) == SN_ERROR_ARRAY);
    sn_array_free(integers);
    sn_array_free(three);
    sn_array_free(four);
    sn_net_free(net);
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

/* Memory is taken when values are looked at: a blob larger than any machine may be described. */
static void huge_shapes(void) {
    sn_net* net = relu_net(4, SHAPE(1 << 20, 1 << 20, 1 << 10, 1));
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

int main(void) {
    SUCCEEDS(sn_set_threads(2));
    wrong_numbers();
    wrong_counts();
    wrong_parameters();
    refused_layers();
    views_after_a_refusal();
    huge_shapes();
    EXPECT(sn_live_storages() == 0);
    return 0;
}
