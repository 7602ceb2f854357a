/* Kernels over every layout: side by side, strided, overlapping, in threads. */
#include <math.h>
#include <sparknet/engine.h>

#include "expect.h"

enum { MANY = 200000 };

static void copies_convert(void) {
    const double values[] = {NAN, INFINITY, -INFINITY, 1e300, -3.7, 255.9, 127.5};
    const double wanted[][7] = {{0, 2147483647, -2147483648.0, 2147483647, -3, 255, 127},
                                {0, 255, 0, 255, 0, 255, 127},
                                {0, 127, -128, 127, -3, 127, 127}};
    const sn_dtype types[] = {SN_INT32, SN_UINT8, SN_INT8};
    sn_array* source = made(SN_FLOAT64, 1, SHAPE(7));
    for (int64_t i = 0; i < 7; ++i) SUCCEEDS(sn_array_set(source, &i, values[i]));
    for (int type = 0; type < 3; ++type) {
        sn_array* target = made(types[type], 1, SHAPE(7));
        SUCCEEDS(sn_array_copy(target, source));
        for (int64_t i = 0; i < 7; ++i) EXPECT(element(target, &i) == wanted[type][i]);
        sn_array_free(target);
    }
    sn_array_free(source);
}

static void overlaps_are_safe(void) {
    sn_array *array = counting(1, SHAPE(MANY)), *front, *back, *reversed;
    SUCCEEDS(sn_array_slice(&front, array, SHAPE(0), SHAPE(MANY - 1), NULL));
    SUCCEEDS(sn_array_slice(&back, array, SHAPE(1), SHAPE(MANY - 1), NULL));
    SUCCEEDS(sn_add(back, back, front));
    for (int64_t i = 1; i < MANY; ++i) EXPECT(floats(array)[i] == (float)(2 * i - 1));
    SUCCEEDS(sn_array_slice(&reversed, array, SHAPE(MANY - 1), SHAPE(MANY), SHAPE(-1)));
    SUCCEEDS(sn_array_copy(array, reversed));
    EXPECT(floats(array)[0] == 2 * MANY - 3 && floats(array)[MANY - 1] == 0);
    sn_array_free(array);
    sn_array_free(front);
    sn_array_free(back);
    sn_array_free(reversed);
}

static void sums_do_not_depend_on_threads(void) {
    sn_array *array = counting(2, SHAPE(MANY / 100, 100)), *turned;
    SUCCEEDS(sn_array_transpose(&turned, array, (const int[]){1, 0}));
    SUCCEEDS(sn_scale(array, array, 1e-3f, 0.1f));
    double once, again, strided;
    SUCCEEDS(sn_set_threads(1));
    SUCCEEDS(sn_norm2(&once, array));
    SUCCEEDS(sn_set_threads(3));
    SUCCEEDS(sn_norm2(&again, array));
    SUCCEEDS(sn_norm2(&strided, turned));
    EXPECT(once == again && fabs(strided - once) < 1e-9 * once);
    EXPECT(sn_set_threads(0) == SN_ERROR_ARRAY);
    sn_array_free(array);
    sn_array_free(turned);
}

static void means_and_extremes(void) {
    sn_array *a = counting(1, SHAPE(MANY)), *b = made(SN_FLOAT32, 1, SHAPE(MANY)), *empty;
    const sn_array* const both[] = {a, b};
    double value;
    int64_t count;
    SUCCEEDS(sn_weighted_mean(b, 2, both, (const double[]){1, 3}));
    EXPECT(floats(b)[8] == 2);
    EXPECT(sn_weighted_mean(b, 2, both, (const double[]){1, -1}) == SN_ERROR_ARRAY);
    SUCCEEDS(sn_count_far(&count, a, b, 0, 1));
    EXPECT(count == MANY - 2);
    floats(a)[MANY / 2] = NAN;
    SUCCEEDS(sn_max(&value, a));
    EXPECT(isnan(value));
    SUCCEEDS(sn_count_not_finite(&count, a));
    EXPECT(count == 1);
    empty = made(SN_FLOAT32, 2, SHAPE(3, 0));
    SUCCEEDS(sn_sum(&value, empty));
    EXPECT(value == 0 && sn_min(&value, empty) == SN_ERROR_ARRAY);
    sn_array_free(a);
    sn_array_free(b);
    sn_array_free(empty);
}

int main(void) {
    copies_convert();
    overlaps_are_safe();
    sums_do_not_depend_on_threads();
    means_and_extremes();
    EXPECT(sn_live_storages() == 0);
    return 0;
}
