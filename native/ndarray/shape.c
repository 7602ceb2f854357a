/* Shapes, strides and what they reach. */
#include <stdio.h>
#include <stdlib.h>

#include "array.h"

const char* sn_dtype_name(sn_dtype dtype) {
    static const char* const names[] = {"float32", "float64", "int32", "uint8", "int8"};
    return names[dtype];
}

int64_t sn_item_size(sn_dtype dtype) {
    static const int64_t sizes[] = {4, 8, 4, 1, 1};
    return sizes[dtype];
}

sn_shape_text sn_describe_shape(int ndim, const int64_t* shape) {
    sn_shape_text out = {"scalar"};
    size_t used = 0;
    for (int axis = 0; axis < ndim && used < sizeof out.text - 1; ++axis) {
        const int added = snprintf(out.text + used, sizeof out.text - used, "%s%lld",
                                   axis ? " x " : "", (long long)shape[axis]);
        used += added > 0 ? (size_t)added : 0;
    }
    return out;
}

sn_status sn_measure(sn_dtype dtype, int ndim, const int64_t* shape, int64_t* size,
                     int64_t* bytes) {
    if ((int)dtype < 0 || (int)dtype > SN_INT8)
        return sn_fail(SN_ERROR_ARRAY, "there is no data type number %d", (int)dtype);
    if (ndim < 0 || ndim > SN_MAX_DIMS)
        return sn_fail(SN_ERROR_ARRAY, "%d axes are more than %d", ndim, (int)SN_MAX_DIMS);
    bool empty = false, large = false;
    int64_t product = 1;
    for (int axis = 0; axis < ndim; ++axis) {
        if (shape[axis] < 0)
            return sn_fail(SN_ERROR_ARRAY, "size %lld of axis %d is negative",
                           (long long)shape[axis], axis);
        if (shape[axis] == 0)
            empty = true;
        else
            large = large || __builtin_mul_overflow(product, shape[axis], &product);
    }
    large = large || __builtin_mul_overflow(product, sn_item_size(dtype), &product);
    if (large || product > PTRDIFF_MAX / 2)
        return sn_fail(SN_ERROR_MEMORY, "an array of %s elements is larger than any memory",
                       sn_describe_shape(ndim, shape).text);
    *size = empty ? 0 : product / sn_item_size(dtype);
    *bytes = empty ? 0 : product;
    return SN_OK;
}

void sn_plain_strides(sn_dtype dtype, int ndim, const int64_t* shape, int64_t* strides) {
    int64_t stride = sn_item_size(dtype);
    for (int axis = ndim - 1; axis >= 0; --axis) {
        strides[axis] = stride;
        stride *= shape[axis] > 0 ? shape[axis] : 1;
    }
}

sn_status sn_extent(sn_dtype dtype, int ndim, const int64_t* shape, const int64_t* strides,
                    int64_t* low, int64_t* high) {
    *low = 0;
    *high = sn_item_size(dtype);
    for (int axis = 0; axis < ndim; ++axis) {
        if (shape[axis] == 0) {
            *low = *high = 0;
            return SN_OK;
        }
        int64_t reach;
        bool wide = __builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach);
        int64_t* end = reach < 0 ? low : high;
        wide = wide || __builtin_add_overflow(*end, reach, end);
        if (wide || *high > PTRDIFF_MAX / 4 || *low < -(PTRDIFF_MAX / 4))
            return sn_fail(SN_ERROR_ARRAY, "stride %lld of axis %d reaches out of any memory",
                           (long long)strides[axis], axis);
    }
    return SN_OK;
}

/* Orders axes by the length of their stride. */
static void sort_by_stride(int count, int64_t (*axes)[2]) {
    for (int i = 1; i < count; ++i)
        for (int j = i; j > 0 && axes[j][0] < axes[j - 1][0]; --j)
            for (int k = 0; k < 2; ++k) {
                const int64_t swapped = axes[j][k];
                axes[j][k] = axes[j - 1][k];
                axes[j - 1][k] = swapped;
            }
}

/* Sufficient, not necessary: each stride steps over all that the shorter ones reach. */
static bool elements_are_distinct(const sn_array* array) {
    int64_t axes[SN_MAX_DIMS][2];
    int count = 0;
    for (int axis = 0; axis < array->ndim; ++axis) {
        if (array->shape[axis] <= 1) continue;
        axes[count][0] = llabs(array->strides[axis]);
        axes[count++][1] = array->shape[axis];
    }
    sort_by_stride(count, axes);
    int64_t reach = sn_item_size(array->dtype);
    for (int i = 0; i < count; ++i) {
        if (axes[i][0] < reach) return false;
        reach += axes[i][0] * (axes[i][1] - 1);
    }
    return true;
}

sn_status sn_check_writable(const sn_array* array) {
    if (array->readonly) return sn_fail(SN_ERROR_ARRAY, "the array is read-only");
    if (array->contiguous || array->size == 0 || elements_are_distinct(array)) return SN_OK;
    return sn_fail(SN_ERROR_ARRAY,
                   "the array cannot be written: several of its elements share memory");
}

static bool shapes_agree(const sn_array* a, const sn_array* b) {
    bool agree = a->ndim == b->ndim;
    for (int axis = 0; agree && axis < a->ndim; ++axis) agree = a->shape[axis] == b->shape[axis];
    return agree;
}

sn_status sn_check_same_shape(const sn_array* a, const sn_array* b) {
    if (shapes_agree(a, b)) return SN_OK;
    return sn_fail(SN_ERROR_ARRAY, "shapes %s and %s differ",
                   sn_describe_shape(a->ndim, a->shape).text,
                   sn_describe_shape(b->ndim, b->shape).text);
}

bool sn_may_overlap(const sn_array* a, const sn_array* b) {
    if (a->size == 0 || b->size == 0) return false;
    int64_t low[2], high[2];
    sn_extent(a->dtype, a->ndim, a->shape, a->strides, &low[0], &high[0]);
    sn_extent(b->dtype, b->ndim, b->shape, b->strides, &low[1], &high[1]);
    return (intptr_t)a->data + low[0] < (intptr_t)b->data + high[1] &&
           (intptr_t)b->data + low[1] < (intptr_t)a->data + high[0];
}

bool sn_same_elements(const sn_array* a, const sn_array* b) {
    bool same = a->data == b->data && a->dtype == b->dtype && shapes_agree(a, b);
    for (int axis = 0; same && axis < a->ndim; ++axis)
        same = a->shape[axis] <= 1 || a->strides[axis] == b->strides[axis];
    return same;
}
