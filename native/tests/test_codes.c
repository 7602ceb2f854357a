/* Codes: the loops for every processor give the same bits, and what codes promise. */
#include <math.h>
#include <sparknet/codes.h>
#include <sparknet/engine.h>
#include <stdint.h>
#include <string.h>

#include "../ndarray/codes.h"
#include "../ndarray/processor.h"
#include "expect.h"

enum { MANY = 100003, HALVES = 1 << 16 };

/* Those that this processor runs, the portable ones first. */
static int variants(const sn_code_kernels** out) {
    int count = 0;
    out[count++] = &sn_codes_baseline;
#if defined(__x86_64__)
    if (sn_is_haswell()) out[count++] = &sn_codes_haswell;
    if (sn_is_skylake()) out[count++] = &sn_codes_skylake;
#endif
    return count;
}

static float of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Exact, by its definition. */
static float half_value(uint16_t half) {
    const int exponent = half >> 10 & 31, digits = half & 1023;
    const double sign = half >> 15 ? -1 : 1;
    if (exponent == 31) return digits ? NAN : (float)(sign * INFINITY);
    if (exponent == 0) return (float)(sign * ldexp(digits, -24));
    return (float)(sign * ldexp(1024 + digits, exponent - 25));
}

static void halves_are_decoded_exactly(const sn_code_kernels* loops) {
    static uint16_t codes[HALVES];
    static float values[HALVES];
    for (int i = 0; i < HALVES; ++i) codes[i] = (uint16_t)i;
    loops->decode_halves(values, codes, HALVES);
    for (int i = 0; i < HALVES; ++i) {
        const float wanted = half_value((uint16_t)i);
        EXPECT(isnan(wanted) ? isnan(values[i]) : memcmp(&wanted, values + i, sizeof wanted) == 0);
    }
}

static uint16_t coded(const sn_code_kernels* loops, float value) {
    float error = 0;
    uint16_t code;
    loops->encode_halves(&code, &value, &error, 1);
    EXPECT(!isfinite(value) || error == value - half_value(code));
    return code;
}

/* Numbers between two halves go to the nearer one, and from the middle to the even one. */
static void halves_are_the_nearest(const sn_code_kernels* loops) {
    for (uint16_t half = 0; half < 0x7bff; ++half) {
        const float low = half_value(half), high = half_value((uint16_t)(half + 1));
        const float middle = low + (high - low) / 2;
        EXPECT(coded(loops, low) == half);
        EXPECT(coded(loops, middle) == (half % 2 == 0 ? half : half + 1));
        EXPECT(coded(loops, nextafterf(middle, low)) == half);
        EXPECT(coded(loops, nextafterf(middle, high)) == half + 1);
        EXPECT(coded(loops, -middle) == ((half % 2 == 0 ? half : half + 1) | 0x8000));
    }
    EXPECT(coded(loops, 65504) == 0x7bff && coded(loops, 1e30F) == 0x7bff);
    EXPECT(coded(loops, INFINITY) == 0x7bff && coded(loops, -INFINITY) == 0xfbff);
    EXPECT(coded(loops, of_bits(1)) == 0 && coded(loops, -of_bits(1)) == 0x8000);
    EXPECT(isnan(half_value(coded(loops, NAN))));
}

/* Bits of all kinds. */
static float any_float(uint64_t* seed) {
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return of_bits((uint32_t)(*seed >> 32));
}

static void variants_agree(const sn_code_kernels* first, const sn_code_kernels* other) {
    uint64_t seed = 7;
    for (int64_t count = 0; count <= SN_SCALED; ++count) {
        float values[SN_SCALED], errors[2][SN_SCALED], scales[2], back[2][SN_SCALED];
        uint16_t halves[2][SN_SCALED] = {{0}};
        int8_t bytes[2][SN_SCALED];
        for (int64_t i = 0; i < count; ++i) {
            values[i] = any_float(&seed);
            /* Even blocks are finite. */
            if (count % 2 == 0 && !isfinite(values[i])) values[i] = 1;
            errors[0][i] = errors[1][i] = i % 3 == 0 ? 0 : values[i] / 1024;
        }
        EXPECT(first->encode_halves(halves[0], values, errors[0], count) ==
               other->encode_halves(halves[1], values, errors[1], count));
        EXPECT(memcmp(halves[0], halves[1], sizeof halves[0]) == 0);
        for (int64_t i = 0; i < count; ++i)
            EXPECT(errors[0][i] == errors[1][i] || isnan(errors[0][i]));
        for (int64_t i = 0; i < count; ++i) errors[0][i] = errors[1][i] = 0.25F;
        const bool finite = first->encode_bytes(bytes[0], scales, values, errors[0], count, 7);
        EXPECT(finite == other->encode_bytes(bytes[1], scales + 1, values, errors[1], count, 7));
        EXPECT(memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0);
        EXPECT(memcmp(scales, scales + 1, sizeof *scales) == 0);
        if (!finite) continue;
        EXPECT(memcmp(errors[0], errors[1], (size_t)count * sizeof(float)) == 0);
        first->decode_bytes(back[0], bytes[0], scales[0], count);
        other->decode_bytes(back[1], bytes[0], scales[0], count);
        EXPECT(memcmp(back[0], back[1], (size_t)count * sizeof(float)) == 0);
        EXPECT(first->encode_floats(bytes[0], scales, values, errors[0], count));
        EXPECT(other->encode_floats(bytes[1], scales + 1, values, errors[1], count));
        EXPECT(memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0);
        EXPECT(memcmp(errors[0], errors[1], (size_t)count * sizeof(float)) == 0);
        first->decode_floats(back[0], bytes[0], scales[0], count);
        other->decode_floats(back[1], bytes[0], scales[0], count);
        EXPECT(memcmp(back[0], back[1], (size_t)count * sizeof(float)) == 0);
    }
}

/* Over odd lengths and several threads; error feedback, and what is not finite. */
static void codes_go_there_and_back(sn_code code, int64_t size) {
    SUCCEEDS(sn_set_threads(3));
    sn_array *values = counting(1, &size), *errors = made(SN_FLOAT32, 1, &size),
             *back = made(SN_FLOAT32, 1, &size);
    char* bytes = malloc((size_t)sn_code_length(code, size) + 1);
    SUCCEEDS(sn_encode(bytes, code, values, errors));
    SUCCEEDS(sn_decode(back, code, bytes));
    for (int64_t i = 0; i < size; ++i)
        EXPECT(floats(errors)[i] == floats(values)[i] - floats(back)[i]);
    if (size > 0) {
        floats(values)[size - 1] = NAN;
        SUCCEEDS(sn_encode(bytes, code, values, errors));
        SUCCEEDS(sn_decode(back, code, bytes));
        EXPECT(isnan(floats(back)[size - 1]));
        for (int64_t i = 0; i < size; ++i) EXPECT(floats(errors)[i] == 0);
    }
    free(bytes);
    sn_array_free(values);
    sn_array_free(errors);
    sn_array_free(back);
}

static void what_does_not_fit_is_refused(void) {
    sn_array *values = counting(1, SHAPE(6)), *errors = made(SN_FLOAT32, 1, SHAPE(6)), *frozen,
             *gaps, *other = made(SN_FLOAT64, 1, SHAPE(6)), *few = made(SN_FLOAT32, 1, SHAPE(5));
    float bytes[100];
    SUCCEEDS(sn_array_freeze(&frozen, errors));
    SUCCEEDS(sn_array_slice(&gaps, errors, SHAPE(0), SHAPE(3), SHAPE(2)));
    EXPECT(sn_encode(bytes, SN_HALVES, values, frozen) == SN_ERROR_ARRAY);
    EXPECT(sn_encode(bytes, SN_HALVES, values, few) == SN_ERROR_ARRAY);
    EXPECT(sn_encode(bytes, SN_HALVES, values, other) == SN_ERROR_ARRAY);
    EXPECT(sn_encode(bytes, SN_HALVES, errors, errors) == SN_ERROR_ARRAY);
    EXPECT(sn_encode(bytes, (sn_code)5, values, errors) == SN_ERROR_ARRAY);
    EXPECT(sn_encode((char*)bytes + 1, SN_BYTES, values, errors) == SN_ERROR_ARRAY);
    EXPECT(sn_encode(NULL, SN_BYTES, values, errors) == SN_ERROR_ARRAY);
    EXPECT(sn_decode(gaps, SN_BYTES, bytes) == SN_ERROR_ARRAY);
    EXPECT(sn_decode(frozen, SN_BYTES, bytes) == SN_ERROR_ARRAY);
    sn_array* const all[] = {values, errors, frozen, gaps, other, few};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) sn_array_free(all[i]);
}

int main(void) {
    const sn_code_kernels* loops[3];
    const int count = variants(loops);
    for (int i = 0; i < count; ++i) {
        halves_are_decoded_exactly(loops[i]);
        halves_are_the_nearest(loops[i]);
        variants_agree(loops[0], loops[i]);
    }
    const int64_t sizes[] = {0, 1, 15, 17, 63, 64, 65, 255, 256, 257, 4096, 4097, MANY};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        for (int code = SN_HALVES; code <= SN_SPARSE; ++code)
            codes_go_there_and_back((sn_code)code, sizes[i]);
    }
    EXPECT(sn_code_length(SN_HALVES, 257) == 514 && sn_code_length(SN_BYTES, 257) == 520);
    EXPECT(sn_code_length(SN_NIBBLES, 257) == 264 && sn_code_length(SN_SPARSE, 4097) == 240);
    what_does_not_fit_is_refused();
    EXPECT(sn_live_storages() == 0);
    return 0;
}
