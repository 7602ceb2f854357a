/* Kernels over odd shapes, no values, and no blobs at all. */
#include <string.h>

#include "nets.h"

static int has_onednn(void) {
    int version[3];
    sn_onednn_version(version, version + 1, version + 2);
    return version[0] != 0;
}

static void set_options(sn_net* net, int number, const int64_t* shape) {
    static const char* const numbers[] = {
        "negative_slope", "alpha",      "beta",        "base",        "scale",
        "shift",          "power",      "ratio",       "min",         "max",
        "threshold",      "eps",        "inner_scale", "outer_scale", "diff_scale",
        "log_base",       "base_scale", "input_scale", "input_shift"};
    for (int i = 0; i < COUNT(numbers); ++i) real(net, number, numbers[i], 0.5);
    whole(net, number, "train", 1);
    whole(net, number, "axis", 1);
    whole(net, number, "outer", shape[0]);
    whole(net, number, "channels", shape[1]);
    whole(net, number, "inner", shape[2] * shape[3]);
    whole(net, number, "normalize_variance", 1);
    whole(net, number, "across_channels", 0);
}

static sn_net* net_of_one(const char* type, const int64_t* shape) {
    sn_net* net = new_net(1);
    blob(net, "bottom", 4, shape);
    blob(net, "top", 4, shape);
    set_options(net, layer(net, type, 0, 1, 0, NULL), shape);
    SUCCEEDS(sn_net_prepare(net, 0, 0));
    return net;
}

/* Backward before there was a forward, too. */
static void run_kernel(const char* type, const int64_t* shape) {
    sn_net* net = net_of_one(type, shape);
    for (int turn = 0; turn < 2; ++turn) {
        SUCCEEDS(sn_net_backward(net, 0, 0, 0));
        forward(net, 0, 0);
    }
    sn_net_free(net);
}

static void kernels_of_one_blob(void) {
    static const char* const types[] = {"AbsVal", "BNLL", "Clip",  "Dropout", "ELU",   "Exp",
                                        "Log",    "MVN",  "Power", "ReLU",    "ReLU6", "Split"};
    static const char* const of_onednn[] = {"Sigmoid", "Softmax", "Swish", "TanH"};
    const int64_t shapes[][4] = {{2, 3, 4, 5}, {0, 3, 4, 5}, {1, 1, 1, 1}};
    for (int s = 0; s < COUNT(shapes); ++s) {
        for (int t = 0; t < COUNT(types); ++t) run_kernel(types[t], shapes[s]);
        for (int t = 0; t < COUNT(of_onednn) && has_onednn(); ++t)
            run_kernel(of_onednn[t], shapes[s]);
    }
    for (int t = 0; t < COUNT(of_onednn) && !has_onednn(); ++t) {
        sn_net* net = net_of_one(of_onednn[t], shapes[0]);
        double loss = 0;
        EXPECT(sn_net_forward(&loss, net, 0, 0) == SN_ERROR_LAYER);
        EXPECT(strncmp(sn_message(), of_onednn[t], strlen(of_onednn[t])) == 0);
        EXPECT(strstr(sn_message(), ": needs oneDNN, which this build does not have") != NULL);
        EXPECT(strstr(sn_message(), "pip install 'sparknet[torch]'") != NULL);
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

static void odd_shapes(void) {
    int64_t many[32];
    for (int i = 0; i < 32; ++i) many[i] = i % 7 == 0 ? 2 : 1;
    const struct {
        int ndim;
        const int64_t* shape;
    } cases[] = {{0, NULL}, {13, many}, {32, many}, {1, SHAPE(0)}, {3, SHAPE(3, 0, 4)}};
    for (int i = 0; i < COUNT(cases); ++i) {
        sn_net* net = relu_net(cases[i].ndim, cases[i].shape);
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

int main(void) {
    SUCCEEDS(sn_set_threads(2));
    kernels_of_one_blob();
    kernels_without_blobs();
    odd_shapes();
    EXPECT(sn_live_storages() == 0);
    return 0;
}
