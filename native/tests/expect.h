/* What the C tests need: a failed expectation names itself and ends the test. */
#ifndef SPARKNET_EXPECT_H
#define SPARKNET_EXPECT_H

#include <sparknet/ndarray.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                                   \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: not true: %s (last message: %s)\n", __FILE__, __LINE__, \
                    #condition, sn_message());                                              \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

#define SUCCEEDS(call) EXPECT((call) == SN_OK)
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static inline sn_array* made(sn_dtype dtype, int ndim, const int64_t* shape) {
    sn_array* array = NULL;
    SUCCEEDS(sn_array_create(&array, dtype, ndim, shape, 1));
    return array;
}

static inline float* floats(const sn_array* array) {
    sn_layout layout;
    sn_array_describe(&layout, array);
    return layout.data;
}

/* 0, 1, 2, … in row-major order. */
static inline sn_array* counting(int ndim, const int64_t* shape) {
    sn_array* array = made(SN_FLOAT32, ndim, shape);
    sn_layout layout;
    sn_array_describe(&layout, array);
    for (int64_t i = 0; i < layout.size; ++i) floats(array)[i] = (float)i;
    return array;
}

static inline double element(const sn_array* array, const int64_t* index) {
    double value = 0;
    SUCCEEDS(sn_array_get(&value, array, index));
    return value;
}

#endif
