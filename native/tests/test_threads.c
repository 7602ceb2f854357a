/* Nets in several threads at once, and a net that wanders from one to another. */
#include <pthread.h>
#include <string.h>

#include "nets.h"

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
    threads();
    nets_move_between_threads();
    EXPECT(sn_live_storages() == 0);
    return 0;
}
