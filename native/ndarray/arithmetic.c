/* The element-by-element operations: each a loop and a call. */
#include "kernel.h"
#include "map.h"

#define MAP(name, expression)                                                     \
    SN_KERNEL static void name(float* out, const float* const* in, int64_t count, \
                               const float* settings) {                           \
        const float *a = in[0], *b = in[1];                                       \
        const float s = settings[0], t = settings[1];                             \
        (void)b, (void)s, (void)t;                                                \
        SN_EACH(i, count) out[i] = (expression);                                  \
    }

MAP(add, a[i] + b[i])
MAP(subtract, a[i] - b[i])
MAP(multiply, a[i] * b[i])
MAP(scale, a[i] * s)
MAP(shift, a[i] + s)
MAP(scale_shift, a[i] * s + t)
MAP(axpy, b[i] + s * a[i])
MAP(axpby, s* a[i] + t * b[i])

static sn_status map2(sn_map_kernel kernel, sn_array* out, const sn_array* a, const sn_array* b,
                      float s, float t) {
    const float settings[2] = {s, t};
    const sn_array* const in[2] = {a, b};
    return sn_map(kernel, settings, out, 2, in);
}

static sn_status map1(sn_map_kernel kernel, sn_array* out, const sn_array* a, float s, float t) {
    const float settings[2] = {s, t};
    return sn_map(kernel, settings, out, 1, &a);
}

sn_status sn_add(sn_array* out, const sn_array* a, const sn_array* b) {
    return map2(add, out, a, b, 0, 0);
}

sn_status sn_subtract(sn_array* out, const sn_array* a, const sn_array* b) {
    return map2(subtract, out, a, b, 0, 0);
}

sn_status sn_multiply(sn_array* out, const sn_array* a, const sn_array* b) {
    return map2(multiply, out, a, b, 0, 0);
}

sn_status sn_scale(sn_array* out, const sn_array* a, float factor, float term) {
    if (term == 0) return map1(scale, out, a, factor, 0);
    if (factor == 1) return map1(shift, out, a, term, 0);
    return map1(scale_shift, out, a, factor, term);
}

sn_status sn_axpy(sn_array* y, float a, const sn_array* x) {
    return map2(axpy, y, x, y, a, 0);
}

sn_status sn_axpby(sn_array* y, float a, const sn_array* x, float b) {
    return b == 0 ? sn_scale(y, x, a, 0) : map2(axpby, y, x, y, a, b);
}
