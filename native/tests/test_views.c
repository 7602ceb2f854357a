/* Views stay inside their storage, and storage lives as long as its views. */
#include <string.h>

#include "expect.h"

static int released;

static void release(void* context) {
    *(int*)context += 1;
}

static void views_share_memory(void) {
    sn_array *array = counting(3, SHAPE(2, 3, 4)), *slice, *row, *turned, *flat;
    SUCCEEDS(sn_array_slice(&slice, array, SHAPE(1, 2, 3), SHAPE(1, 2, 2), SHAPE(1, -1, -2)));
    EXPECT(element(slice, SHAPE(0, 0, 0)) == 23 && element(slice, SHAPE(0, 1, 1)) == 17);
    SUCCEEDS(sn_array_index(&row, slice, 1, 1));
    SUCCEEDS(sn_array_transpose(&turned, row, (const int[]){1, 0}));
    sn_array_free(array);
    sn_array_free(slice);
    EXPECT(element(turned, SHAPE(1, 0)) == 17);
    SUCCEEDS(sn_array_set(turned, SHAPE(1, 0), -1));
    EXPECT(element(row, SHAPE(0, 1)) == -1);
    SUCCEEDS(sn_array_reshape(&flat, turned, 1, SHAPE(2), 1));
    EXPECT(element(flat, SHAPE(1)) == -1);
    sn_array_free(row);
    sn_array_free(turned);
    EXPECT(sn_live_storages() == 1);
    sn_array_free(flat);
    EXPECT(sn_live_storages() == 0);
}

static void ranges_are_checked(void) {
    sn_array *array = counting(2, SHAPE(3, 4)), *out = NULL;
    EXPECT(sn_array_slice(&out, array, SHAPE(0, 3), SHAPE(3, 2), NULL) == SN_ERROR_INDEX);
    EXPECT(sn_array_slice(&out, array, SHAPE(0, 0), SHAPE(3, 3), SHAPE(1, 2)) == SN_ERROR_INDEX);
    EXPECT(sn_array_slice(&out, array, SHAPE(0, 0), SHAPE(3, 2), SHAPE(1, INT64_MAX)) ==
           SN_ERROR_INDEX);
    EXPECT(sn_array_slice(&out, array, SHAPE(0, 0), SHAPE(3, 2), SHAPE(1, 0)) == SN_ERROR_ARRAY);
    EXPECT(sn_array_slice(&out, array, SHAPE(-1, 0), SHAPE(1, 1), NULL) == SN_ERROR_INDEX);
    EXPECT(sn_array_index(&out, array, 2, 0) == SN_ERROR_INDEX);
    EXPECT(sn_array_index(&out, array, 0, 3) == SN_ERROR_INDEX);
    EXPECT(sn_array_transpose(&out, array, (const int[]){1, 1}) == SN_ERROR_ARRAY);
    EXPECT(sn_array_reshape(&out, array, 1, SHAPE(11), 0) == SN_ERROR_ARRAY);
    EXPECT(sn_array_set(array, SHAPE(3, 0), 1) == SN_ERROR_INDEX);
    EXPECT(strstr(sn_message(), "index 3 is outside axis 0 of size 3") != NULL);
    EXPECT(out == NULL);
    sn_array_free(array);
}

static void sizes_are_checked(void) {
    sn_array* out = NULL;
    int64_t many[33] = {0};
    EXPECT(sn_array_create(&out, SN_FLOAT32, 2, SHAPE(INT64_MAX, 8), 0) == SN_ERROR_MEMORY);
    EXPECT(sn_array_create(&out, SN_FLOAT32, 1, SHAPE(-1), 0) == SN_ERROR_ARRAY);
    EXPECT(sn_array_create(&out, SN_FLOAT32, 33, many, 0) == SN_ERROR_ARRAY);
    EXPECT(sn_array_create(&out, (sn_dtype)5, 0, NULL, 0) == SN_ERROR_ARRAY);
    float number = 0;
    EXPECT(sn_array_borrow(&out, &number, SN_FLOAT32, 1, SHAPE(3), SHAPE(INT64_MAX - 3), 0, NULL,
                           NULL) == SN_ERROR_ARRAY);
    EXPECT(sn_array_borrow(&out, (char*)&number + 1, SN_FLOAT32, 0, NULL, NULL, 0, release,
                           &released) == SN_ERROR_ARRAY);
    EXPECT(out == NULL && released == 0 && sn_live_storages() == 0);
}

static void lenders_are_told(void) {
    float numbers[4] = {1, 2, 3, 4};
    sn_array *array, *view;
    SUCCEEDS(sn_array_borrow(&array, numbers + 3, SN_FLOAT32, 1, SHAPE(4), SHAPE(-4), 1, release,
                             &released));
    SUCCEEDS(sn_array_slice(&view, array, SHAPE(1), SHAPE(2), NULL));
    EXPECT(element(view, SHAPE(0)) == 3);
    EXPECT(sn_array_fill(view, 0) == SN_ERROR_ARRAY);
    sn_array_free(array);
    EXPECT(released == 0);
    sn_array_free(view);
    EXPECT(released == 1);
}

static void shared_elements_are_not_written(void) {
    float number = 1;
    sn_array* array;
    SUCCEEDS(sn_array_borrow(&array, &number, SN_FLOAT32, 1, SHAPE(5), SHAPE(0), 0, NULL, NULL));
    double sum = 0;
    SUCCEEDS(sn_sum(&sum, array));
    EXPECT(sum == 5);
    EXPECT(sn_array_fill(array, 2) == SN_ERROR_ARRAY && number == 1);
    sn_array_free(array);
}

int main(void) {
    views_share_memory();
    ranges_are_checked();
    sizes_are_checked();
    lenders_are_told();
    shared_elements_are_not_written();
    EXPECT(sn_live_storages() == 0);
    return 0;
}
