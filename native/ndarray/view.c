/* Arrays over the memory of other arrays. */
#include <string.h>

#include "array.h"

static sn_status view(sn_array** out, const sn_array* array, char* data, int ndim,
                      const int64_t* shape, const int64_t* strides) {
    return sn_array_over(out, array->storage, data, array->dtype, ndim, shape, strides,
                         array->readonly);
}

static bool in_range(int64_t start, int64_t count, int64_t step, int64_t size) {
    if (count == 0) return start >= 0 && start <= size;
    int64_t last;
    if (start < 0 || start >= size || __builtin_mul_overflow(count - 1, step, &last)) return false;
    return !__builtin_add_overflow(start, last, &last) && last >= 0 && last < size;
}

sn_status sn_array_slice(sn_array** out, const sn_array* array, const int64_t* starts,
                         const int64_t* sizes, const int64_t* steps) {
    int64_t strides[SN_MAX_DIMS];
    char* data = array->data;
    bool empty = false;
    for (int axis = 0; axis < array->ndim; ++axis) {
        const int64_t step = steps == NULL ? 1 : steps[axis];
        if (step == 0) return sn_fail(SN_ERROR_ARRAY, "the step of axis %d is 0", axis);
        if (sizes[axis] < 0 || !in_range(starts[axis], sizes[axis], step, array->shape[axis]))
            return sn_fail(SN_ERROR_INDEX,
                           "%lld elements from %lld on do not lie in axis %d of size %lld",
                           (long long)sizes[axis], (long long)starts[axis], axis,
                           (long long)array->shape[axis]);
        strides[axis] = sizes[axis] > 1 ? array->strides[axis] * step : array->strides[axis];
        empty = empty || sizes[axis] == 0;
    }
    for (int axis = 0; axis < array->ndim && !empty; ++axis)
        data += starts[axis] * array->strides[axis];
    return view(out, array, data, array->ndim, sizes, strides);
}

static sn_status check_axis(const sn_array* array, int axis) {
    if (axis >= 0 && axis < array->ndim) return SN_OK;
    return sn_fail(SN_ERROR_INDEX, "there is no axis %d in an array of %d", axis, array->ndim);
}

/* Copies all entries but the one of `axis`. */
static void leave_out(int64_t* out, const int64_t* entries, int ndim, int axis) {
    int kept = 0;
    for (int i = 0; i < ndim; ++i)
        if (i != axis) out[kept++] = entries[i];
}

sn_status sn_array_index(sn_array** out, const sn_array* array, int axis, int64_t index) {
    const sn_status status = check_axis(array, axis);
    if (status != SN_OK) return status;
    if (index < 0 || index >= array->shape[axis])
        return sn_fail(SN_ERROR_INDEX, "index %lld is outside axis %d of size %lld",
                       (long long)index, axis, (long long)array->shape[axis]);
    int64_t shape[SN_MAX_DIMS], strides[SN_MAX_DIMS];
    leave_out(shape, array->shape, array->ndim, axis);
    leave_out(strides, array->strides, array->ndim, axis);
    char* data = array->data + (array->size == 0 ? 0 : index * array->strides[axis]);
    return view(out, array, data, array->ndim - 1, shape, strides);
}

sn_status sn_array_squeeze(sn_array** out, const sn_array* array, int count, const int* axes) {
    bool gone[SN_MAX_DIMS] = {false};
    for (int i = 0; i < count; ++i) {
        const sn_status status = check_axis(array, axes[i]);
        if (status != SN_OK) return status;
        if (array->shape[axes[i]] != 1)
            return sn_fail(SN_ERROR_ARRAY, "axis %d has size %lld, not 1", axes[i],
                           (long long)array->shape[axes[i]]);
        gone[axes[i]] = true;
    }
    int64_t shape[SN_MAX_DIMS], strides[SN_MAX_DIMS];
    int kept = 0;
    for (int axis = 0; axis < array->ndim; ++axis) {
        if (gone[axis]) continue;
        shape[kept] = array->shape[axis];
        strides[kept++] = array->strides[axis];
    }
    return view(out, array, array->data, kept, shape, strides);
}

sn_status sn_array_transpose(sn_array** out, const sn_array* array, const int* axes) {
    bool used[SN_MAX_DIMS] = {false};
    int64_t shape[SN_MAX_DIMS], strides[SN_MAX_DIMS];
    for (int i = 0; i < array->ndim; ++i) {
        const sn_status status = check_axis(array, axes[i]);
        if (status != SN_OK) return status;
        if (used[axes[i]])
            return sn_fail(SN_ERROR_ARRAY, "axis %d is named twice in a transposition", axes[i]);
        used[axes[i]] = true;
        shape[i] = array->shape[axes[i]];
        strides[i] = array->strides[axes[i]];
    }
    return view(out, array, array->data, array->ndim, shape, strides);
}

sn_status sn_array_freeze(sn_array** out, const sn_array* array) {
    return sn_array_over(out, array->storage, array->data, array->dtype, array->ndim, array->shape,
                         array->strides, true);
}

/* Drops axes of size 1 and joins axes that follow each other in memory. */
static int joined(const sn_array* array, int64_t* shape, int64_t* strides) {
    int count = 0;
    for (int axis = 0; axis < array->ndim; ++axis) {
        if (array->shape[axis] == 1) continue;
        const int64_t stride = array->strides[axis], size = array->shape[axis];
        if (count > 0 && strides[count - 1] == stride * size) {
            shape[count - 1] *= size;
            strides[count - 1] = stride;
        } else {
            shape[count] = size;
            strides[count++] = stride;
        }
    }
    return count;
}

/*
 * Splits the joined axes, last first, into the new ones: each new axis must be a divisor
 * of what is left of the joined axis that it falls into.
 */
static bool split_strides(const sn_array* array, int ndim, const int64_t* shape, int64_t* strides) {
    int64_t old_shape[SN_MAX_DIMS], old_strides[SN_MAX_DIMS];
    int old = joined(array, old_shape, old_strides) - 1;
    int64_t left = old >= 0 ? old_shape[old] : 1;
    int64_t stride = old >= 0 ? old_strides[old] : sn_item_size(array->dtype);
    for (int axis = ndim - 1; axis >= 0; --axis) {
        if (left == 1 && old > 0 && shape[axis] != 1) {
            left = old_shape[--old];
            stride = old_strides[old];
        }
        if (left % shape[axis] != 0) return false;
        strides[axis] = stride;
        left /= shape[axis];
        stride *= shape[axis];
    }
    return true;
}

static sn_status reshaped_copy(sn_array** out, const sn_array* array, int ndim,
                               const int64_t* shape) {
    sn_array *copy, *result;
    sn_status status = sn_array_create(&copy, array->dtype, array->ndim, array->shape, 0);
    if (status != SN_OK) return status;
    status = sn_array_copy(copy, array);
    if (status == SN_OK) status = sn_array_reshape(&result, copy, ndim, shape, 1);
    if (status == SN_OK) *out = result;
    sn_array_free(copy);
    return status;
}

sn_status sn_array_reshape(sn_array** out, const sn_array* array, int ndim, const int64_t* shape,
                           int view_only) {
    int64_t size, bytes, strides[SN_MAX_DIMS];
    const sn_status status = sn_measure(array->dtype, ndim, shape, &size, &bytes);
    if (status != SN_OK) return status;
    if (size != array->size)
        return sn_fail(SN_ERROR_ARRAY, "%lld elements do not fit the shape %s",
                       (long long)array->size, sn_describe_shape(ndim, shape).text);
    if (array->contiguous)
        sn_plain_strides(array->dtype, ndim, shape, strides);
    else if (!split_strides(array, ndim, shape, strides))
        return view_only ? sn_fail(SN_ERROR_ARRAY, "the shape %s needs a copy",
                                   sn_describe_shape(ndim, shape).text)
                         : reshaped_copy(out, array, ndim, shape);
    return view(out, array, array->data, ndim, shape, strides);
}
