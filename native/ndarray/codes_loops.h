/*
 * The loops themselves. Included once for each instruction set, after a definition of
 * SN_TABLE, the name of the table that is to hold them.
 */
#include <string.h>

#include "codes.h"
#include "kernel.h"
#include "vectors.h"

#if defined(__AVX512F__) || defined(__F16C__)
#include <immintrin.h>
#endif

/* Numbers that are converted at once. */
enum { WIDTH = 16 };

#define MOST_HALF 65504.0F
#define MAGNITUDE 0x7fffffff
#define INFINITE 0x7f800000

/* All ones where the test holds. */
#define PICK(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))

#if defined(__AVX512F__)
SN_INLINE void store_halves(uint16_t* out, sn_floats x) {
    /* All lanes; the form without a mask is a macro that warns in builds for debugging. */
    const __mmask16 all = 0xffff;
    const __m256i codes = _mm512_maskz_cvtps_ph(all, (__m512)x, _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256((__m256i*)out, codes);
}

SN_INLINE sn_floats load_halves(const uint16_t* data) {
    return (sn_floats)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)data));
}
#elif defined(__F16C__)
SN_INLINE void store_halves(uint16_t* out, sn_floats x) {
    float lanes[WIDTH];
    memcpy(lanes, &x, sizeof lanes);
    for (int i = 0; i < WIDTH; i += 8)
        _mm_storeu_si128((__m128i*)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(lanes + i), _MM_FROUND_TO_NEAREST_INT));
}

SN_INLINE sn_floats load_halves(const uint16_t* data) {
    float lanes[WIDTH];
    for (int i = 0; i < WIDTH; i += 8)
        _mm256_storeu_ps(lanes + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(data + i))));
    return sn_load(lanes);
}
#else
typedef uint16_t halves __attribute__((vector_size(2 * WIDTH)));

/* For magnitudes up to the largest half. */
SN_INLINE void store_halves(uint16_t* out, sn_floats x) {
    const sn_ints bits = (sn_ints)x, magnitude = bits & MAGNITUDE;
    /* To nearest, ties to even; the exponent's bias goes from 127 to 15. */
    const sn_ints normal = (magnitude - (112 << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    /* In 0.5 .. 1 a float's last bit is the unit of the halves below 2^-14. */
    const sn_ints small = (sn_ints)((sn_floats)magnitude + 0.5F) - 0x3f000000;
    const sn_ints nan = 0x7e00 | ((magnitude >> 13) & 0x1ff);
    const sn_ints finite = PICK(magnitude < 0x38800000, small, normal);
    const sn_ints code = PICK(magnitude > INFINITE, nan, finite) | ((bits >> 16) & 0x8000);
    const halves narrow = __builtin_convertvector(code, halves);
    memcpy(out, &narrow, sizeof narrow);
}

SN_INLINE sn_floats load_halves(const uint16_t* data) {
    halves narrow;
    memcpy(&narrow, data, sizeof narrow);
    const sn_ints code = __builtin_convertvector(narrow, sn_ints), magnitude = code & 0x7fff;
    const sn_ints normal = (magnitude << 13) + (112 << 23);
    const sn_ints special = (INFINITE | (magnitude << 13)) | ((magnitude > 0x7c00) & 0x400000);
    const sn_ints small = (sn_ints)(__builtin_convertvector(magnitude, sn_floats) * 0x1p-24F);
    const sn_ints finite = PICK(magnitude < 0x400, small, normal);
    return (sn_floats)(PICK(magnitude >= 0x7c00, special, finite) | ((code & 0x8000) << 16));
}
#endif

/* NaN stays. */
SN_INLINE sn_floats limited(sn_floats x, float most) {
    x = sn_choose(x > most, (sn_floats){0} + most, x);
    return sn_choose(x < -most, (sn_floats){0} - most, x);
}

/* The rest at the end is padded with zeros. */
static bool encode_halves(uint16_t* out, const float* values, float* errors, int64_t count) {
    sn_ints bad = {0};
    int64_t done = 0;
    for (; done + WIDTH <= count; done += WIDTH) {
        const sn_floats wanted = sn_load(values + done) + sn_load(errors + done);
        store_halves(out + done, limited(wanted, MOST_HALF));
        const sn_floats lost = wanted - load_halves(out + done);
        bad |= ((sn_ints)lost & INFINITE) == INFINITE;
        memcpy(errors + done, &lost, sizeof lost);
    }
    bool finite = true;
    for (int i = 0; i < WIDTH; ++i) finite = finite && bad[i] == 0;
    if (done == count) return finite;
    const size_t rest = (size_t)(count - done);
    float last[2][WIDTH] = {{0}};
    uint16_t code[WIDTH];
    memcpy(last[0], values + done, rest * sizeof(float));
    memcpy(last[1], errors + done, rest * sizeof(float));
    finite = encode_halves(code, last[0], last[1], WIDTH) && finite;
    memcpy(out + done, code, rest * sizeof *code);
    memcpy(errors + done, last[1], rest * sizeof(float));
    return finite;
}

static void decode_halves(float* out, const uint16_t* data, int64_t count) {
    int64_t done = 0;
    for (; done + WIDTH <= count; done += WIDTH) {
        const sn_floats values = load_halves(data + done);
        memcpy(out + done, &values, sizeof values);
    }
    if (done == count) return;
    float last[WIDTH];
    uint16_t code[WIDTH] = {0};
    memcpy(code, data + done, (size_t)(count - done) * sizeof *code);
    decode_halves(last, code, WIDTH);
    memcpy(out + done, last, (size_t)(count - done) * sizeof *last);
}

/* Adds the errors; whether all sums are finite. The scale is the largest one by `most`. */
SN_INLINE bool sum_up(float* wanted, float* scale, const float* values, const float* errors,
                      int64_t count, float most) {
    /* As integers, magnitudes are in the same order, and NaN is beyond infinity. */
    int32_t largest = 0;
    for (int64_t i = 0; i < count; ++i) wanted[i] = values[i] + errors[i];
    for (int64_t i = 0; i < count; ++i) {
        int32_t bits;
        memcpy(&bits, wanted + i, sizeof bits);
        largest = (bits & MAGNITUDE) > largest ? bits & MAGNITUDE : largest;
    }
    float magnitude;
    memcpy(&magnitude, &largest, sizeof magnitude);
    *scale = magnitude / most;
    return largest < INFINITE;
}

static bool encode_bytes(int8_t* out, float* scale, const float* values, float* errors,
                         int64_t count, float most) {
    float wanted[SN_SCALED];
    memset(out, 0, SN_SCALED);
    if (!sum_up(wanted, scale, values, errors, count, most)) return false;
    const float divisor = *scale > 0 ? *scale : 1.0F, step = *scale;
    /* Adding and subtracting this rounds to nearest, ties to even. */
    const float whole = 0x1.8p23F;
    SN_EACH(i, count) {
        const float quotient = wanted[i] / divisor;
        /* A scale that is no normal number is far from exact. */
        const float bounded = quotient > most ? most : quotient < -most ? -most : quotient;
        const int32_t code = (int32_t)((bounded + whole) - whole);
        out[i] = (int8_t)code;
        errors[i] = wanted[i] - (float)code * step;
    }
    return true;
}

static void decode_bytes(float* out, const int8_t* data, float scale, int64_t count) {
    SN_EACH(i, count) out[i] = (float)data[i] * scale;
}

SN_INLINE float small_float(int32_t code) {
    const int32_t place = code & 7;
    const float half = 0.5F * (float)place, high = place == 7 ? 6.0F : (float)(place - 2);
    const float magnitude = place < 4 ? half : high;
    return code & 8 ? -magnitude : magnitude;
}

static bool encode_floats(int8_t* out, float* scale, const float* values, float* errors,
                          int64_t count) {
    float wanted[SN_SCALED];
    memset(out, 0, SN_SCALED);
    if (!sum_up(wanted, scale, values, errors, count, 6.0F)) return false;
    const float divisor = *scale > 0 ? *scale : 1.0F, step = *scale;
    SN_EACH(i, count) {
        const float quotient = wanted[i] / divisor, size = quotient < 0 ? -quotient : quotient;
        /* How many of the middles between two neighbours it is beyond. */
        const int32_t code = (size > 0.25F) + (size > 0.75F) + (size > 1.25F) + (size > 1.75F) +
                             (size > 2.5F) + (size > 3.5F) + (size > 5.0F) + (quotient < 0 ? 8 : 0);
        out[i] = (int8_t)code;
        errors[i] = wanted[i] - small_float(code) * step;
    }
    return true;
}

static void decode_floats(float* out, const int8_t* data, float scale, int64_t count) {
    SN_EACH(i, count) out[i] = small_float(data[i]) * scale;
}

const sn_code_kernels SN_TABLE = {encode_halves, decode_halves, encode_bytes,
                                  decode_bytes,  encode_floats, decode_floats};
