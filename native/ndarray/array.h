/* The array itself, and the checks that every maker of arrays shares. */
#ifndef SPARKNET_ARRAY_H
#define SPARKNET_ARRAY_H

#include <sparknet/ndarray.h>
#include <stdbool.h>

#include "failure.h"
#include "storage.h"

struct sn_array {
    sn_storage* storage;
    char* data;
    int64_t size;
    int64_t shape[SN_MAX_DIMS];
    int64_t strides[SN_MAX_DIMS];
    sn_dtype dtype;
    int ndim;
    bool readonly;
    bool contiguous;
    /* Made by sn_array_lend: somebody may write to the memory while the array exists. */
    bool loan;
};

/* Room for "2 x 3 x 4". */
typedef struct sn_shape_text {
    char text[128];
} sn_shape_text;

sn_shape_text sn_describe_shape(int ndim, const int64_t* shape);
const char* sn_dtype_name(sn_dtype dtype);
int64_t sn_item_size(sn_dtype dtype);

/* Elements and bytes of a shape; refuses bad dtypes, negative sizes and impossible lengths. */
sn_status sn_measure(sn_dtype dtype, int ndim, const int64_t* shape, int64_t* size, int64_t* bytes);

/* Row-major strides without gaps. */
void sn_plain_strides(sn_dtype dtype, int ndim, const int64_t* shape, int64_t* strides);

/* The first and the past-the-last byte that elements occupy, relative to the first element. */
sn_status sn_extent(sn_dtype dtype, int ndim, const int64_t* shape, const int64_t* strides,
                    int64_t* low, int64_t* high);

/* A new array over a storage, of which it takes a reference of its own. */
sn_status sn_array_over(sn_array** out, sn_storage* storage, char* data, sn_dtype dtype, int ndim,
                        const int64_t* shape, const int64_t* strides, bool readonly);

sn_status sn_check_writable(const sn_array* array);
sn_status sn_check_same_shape(const sn_array* a, const sn_array* b);

/* Whether the two may have a byte in common. */
bool sn_may_overlap(const sn_array* a, const sn_array* b);
/* Whether they are the same elements in the same order. */
bool sn_same_elements(const sn_array* a, const sn_array* b);

#endif
