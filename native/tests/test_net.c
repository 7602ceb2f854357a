/* The engine's nets from C: passes, shapes, views, shared values, memory, random numbers. */
#include <string.h>

#include "nets.h"

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

/* A part of a net takes other shapes; the rest, computed together with it before, is left alone. */
static void a_part_takes_other_shapes(void) {
    for (int train = 0; train < 2; ++train) {
        sn_net* net = small_net(train, 2);
        double loss = 0;
        expect_small(net, 2);
        /* Two images of 26 in the middle stay where they are when a third comes. */
        SUCCEEDS(sn_net_extend_blob(net, MIDDLE, 4, SHAPE(3, 20, 6, 6)));
        EXPECT(value(net, MIDDLE, 0, 2 * 720 - 1) == 26 && value(net, MIDDLE, 0, 2 * 720) == 0);
        SUCCEEDS(sn_net_reshape_blob(net, OUT, 2, SHAPE(3, 5)));
        SUCCEEDS(sn_net_prepare(net, RELU, PRODUCT));
        forward(net, RELU, PRODUCT);
        EXPECT(value(net, OUT, 0, 0) == 18722 && value(net, OUT, 0, 14) == 2);
        EXPECT(sn_net_forward(&loss, net, 0, LAYERS - 1) == SN_ERROR_LAYER);
        EXPECT(sn_net_failed_layer(net) == CONVOLUTION);
        EXPECT(sn_net_backward(net, LAYERS - 1, 0, 0) == SN_ERROR_LAYER);
        EXPECT(sn_net_failed_layer(net) == CONVOLUTION);
        resize_small(net, 2);
        SUCCEEDS(sn_net_prepare(net, 0, LAYERS - 1));
        expect_small(net, 2);
        EXPECT(sn_net_extend_blob(net, MIDDLE, 40, SHAPE(1)) == SN_ERROR_ARRAY);
        sn_net_free(net);
    }
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
    EXPECT(sn_net_share_param(net, 2, wrong) == SN_ERROR_ARRAY);
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

int main(void) {
    SUCCEEDS(sn_set_threads(2));
    passes_and_shapes();
    stale_shapes_are_refused();
    a_part_takes_other_shapes();
    fused();
    views_outlive_nets();
    shared_parameters();
    shared_values();
    memory_is_bounded();
    random_numbers_start_anew();
    EXPECT(sn_live_storages() == 0);
    return 0;
}
