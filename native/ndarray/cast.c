#include "cast.h"

#include <math.h>
#include <string.h>

#include "kernel.h"

/* Every element type is exact in double, so one rule suffices. */
#define TO_float(x) ((float)(x))
#define TO_double(x) ((double)(x))
#define LIMITED(x, low, high) ((x) != (x) ? 0 : (x) < (low) ? (low) : (x) > (high) ? (high) : (x))
#define TO_int32_t(x) ((int32_t)LIMITED((double)(x), -2147483648.0, 2147483647.0))
#define TO_uint8_t(x) ((uint8_t)LIMITED((double)(x), 0.0, 255.0))
#define TO_int8_t(x) ((int8_t)LIMITED((double)(x), -128.0, 127.0))

#define CAST(to, from)                                                                 \
    SN_KERNEL static void to##_from_##from(void* out, const void* in, int64_t count) { \
        to* restrict target = out;                                                     \
        const from* restrict source = in;                                              \
        SN_EACH(i, count) target[i] = TO_##to(source[i]);                              \
    }

#define SAME(type)                                                             \
    static void type##_from_##type(void* out, const void* in, int64_t count) { \
        memcpy(out, in, (size_t)count * sizeof(type));                         \
    }

SAME(float)
CAST(float, double)
CAST(float, int32_t)
CAST(float, uint8_t)
CAST(float, int8_t)
CAST(double, float)
SAME(double)
CAST(double, int32_t)
CAST(double, uint8_t)
CAST(double, int8_t)
CAST(int32_t, float)
CAST(int32_t, double)
SAME(int32_t)
CAST(int32_t, uint8_t)
CAST(int32_t, int8_t)
CAST(uint8_t, float)
CAST(uint8_t, double)
CAST(uint8_t, int32_t)
SAME(uint8_t)
CAST(uint8_t, int8_t)
CAST(int8_t, float)
CAST(int8_t, double)
CAST(int8_t, int32_t)
CAST(int8_t, uint8_t)
SAME(int8_t)

#define ROW(to) \
    {to##_from_float, to##_from_double, to##_from_int32_t, to##_from_uint8_t, to##_from_int8_t}

sn_cast sn_find_cast(sn_dtype to, sn_dtype from) {
    static const sn_cast casts[5][5] = {ROW(float), ROW(double), ROW(int32_t), ROW(uint8_t),
                                        ROW(int8_t)};
    return casts[to][from];
}
