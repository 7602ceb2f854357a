#include "walk.h"

#include <string.h>

void sn_walk_init(sn_walk* walk, const sn_array* array) {
    walk->data = array->data;
    walk->item = sn_item_size(array->dtype);
    walk->dtype = array->dtype;
    walk->contiguous = array->contiguous;
    int count = 0;
    for (int axis = 0; axis < array->ndim; ++axis) {
        const int64_t size = array->shape[axis], stride = array->strides[axis];
        if (size == 1) continue;
        if (count > 0 && walk->strides[count - 1] == stride * size) {
            walk->shape[count - 1] *= size;
            walk->strides[count - 1] = stride;
        } else {
            walk->shape[count] = size;
            walk->strides[count++] = stride;
        }
    }
    if (count == 0) {
        walk->shape[0] = array->size;
        walk->strides[0] = walk->item;
        count = 1;
    }
    walk->ndim = count;
}

#define COPY_RUN(type)                                                     \
    do {                                                                   \
        if (gather)                                                        \
            for (int64_t i = 0; i < count; ++i)                            \
                ((type*)buffer)[i] = *(const type*)(element + i * stride); \
        else                                                               \
            for (int64_t i = 0; i < count; ++i)                            \
                *(type*)(element + i * stride) = ((const type*)buffer)[i]; \
    } while (0)

/* Elements of one axis to or from a buffer; bits only, so one type per size will do. */
static void copy_run(char* element, int64_t stride, int64_t item, int64_t count, char* buffer,
                     bool gather) {
    if (stride == item) {
        if (gather)
            memcpy(buffer, element, (size_t)(count * item));
        else
            memcpy(element, buffer, (size_t)(count * item));
    } else if (item == 4) {
        COPY_RUN(uint32_t);
    } else if (item == 8) {
        COPY_RUN(uint64_t);
    } else {
        COPY_RUN(uint8_t);
    }
}

static void copy_runs(const sn_walk* walk, int64_t start, int64_t count, char* buffer,
                      bool gather) {
    int64_t index[SN_MAX_DIMS];
    const int last = walk->ndim - 1;
    char* element = walk->data;
    for (int axis = last; axis >= 0; --axis) {
        index[axis] = start % walk->shape[axis];
        start /= walk->shape[axis];
        element += index[axis] * walk->strides[axis];
    }
    while (count > 0) {
        const int64_t rest = walk->shape[last] - index[last], run = rest < count ? rest : count;
        copy_run(element, walk->strides[last], walk->item, run, buffer, gather);
        buffer += run * walk->item;
        count -= run;
        if (count == 0) return;
        element -= index[last] * walk->strides[last];
        index[last] = 0;
        for (int axis = last - 1; axis >= 0; --axis) {
            element += walk->strides[axis];
            if (++index[axis] < walk->shape[axis]) break;
            element -= walk->shape[axis] * walk->strides[axis];
            index[axis] = 0;
        }
    }
}

const void* sn_walk_read(const sn_walk* walk, int64_t start, int64_t count, void* buffer) {
    if (walk->contiguous) return walk->data + start * walk->item;
    copy_runs(walk, start, count, buffer, true);
    return buffer;
}

void* sn_walk_target(const sn_walk* walk, int64_t start, void* buffer) {
    return walk->contiguous ? walk->data + start * walk->item : buffer;
}

void sn_walk_scatter(const sn_walk* walk, int64_t start, int64_t count, const void* buffer) {
    /* copy_runs only reads the buffer when it does not gather. */
    if (!walk->contiguous) copy_runs(walk, start, count, (char*)(uintptr_t)buffer, false);
}
