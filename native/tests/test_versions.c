/* Every write to a storage is noticed, or the storage says that it cannot be. */
#include "expect.h"

static void writes_change_the_version(void) {
    sn_array *array = counting(2, SHAPE(4, 6)), *other = counting(2, SHAPE(4, 6)), *part;
    SUCCEEDS(sn_array_slice(&part, array, SHAPE(1, 2), SHAPE(2, 3), NULL));
    uint64_t before = sn_array_version(array);
    EXPECT(before != 0 && sn_array_version(part) == before);
#define WRITES(call)                                                          \
    SUCCEEDS(call);                                                           \
    EXPECT(sn_array_version(array) != before && sn_array_version(part) != 0); \
    before = sn_array_version(array)
    WRITES(sn_array_set(part, SHAPE(1, 1), 5));
    WRITES(sn_array_fill(part, 2));
    WRITES(sn_array_copy(array, other));
    WRITES(sn_add(array, array, other));
    WRITES(sn_axpy(array, 2, other));
    WRITES(sn_weighted_mean(array, 1, (const sn_array* const[]){other}, NULL));
#undef WRITES
    double sum;
    SUCCEEDS(sn_sum(&sum, array));
    SUCCEEDS(sn_array_copy(other, array));
    EXPECT(sn_array_version(array) == before);
    sn_array_free(part);
    sn_array_free(array);
    sn_array_free(other);
}

static void what_is_lent_has_no_version(void) {
    sn_array *array = counting(1, SHAPE(8)), *first, *second;
    const uint64_t before = sn_array_version(array);
    SUCCEEDS(sn_array_lend(&first, array));
    SUCCEEDS(sn_array_lend(&second, array));
    EXPECT(sn_array_version(array) == 0);
    sn_array_free(first);
    EXPECT(sn_array_version(array) == 0);
    sn_array_free(second);
    EXPECT(sn_array_version(array) != 0 && sn_array_version(array) != before);
    sn_array_free(array);
}

static void the_memory_of_others_has_none(void) {
    float numbers[3] = {1, 2, 3};
    sn_array* array;
    SUCCEEDS(sn_array_borrow(&array, numbers, SN_FLOAT32, 1, SHAPE(3), NULL, 0, NULL, NULL));
    EXPECT(sn_array_version(array) == 0);
    sn_array_free(array);
}

int main(void) {
    writes_change_the_version();
    what_is_lent_has_no_version();
    the_memory_of_others_has_none();
    EXPECT(sn_live_storages() == 0);
    return 0;
}
