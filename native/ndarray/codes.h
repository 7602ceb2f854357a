/* The loops of codes, compiled for several instruction sets. */
#ifndef SPARKNET_CODES_KERNELS_H
#define SPARKNET_CODES_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers that share a scale. */
enum { SN_SCALED = 256 };

typedef struct sn_code_kernels {
    /* Whether every error is finite. */
    bool (*encode_halves)(uint16_t* out, const float* values, float* errors, int64_t count);
    void (*decode_halves)(float* out, const uint16_t* data, int64_t count);
    /* One block, of at most SN_SCALED numbers; the code is filled up. Integers up to `most`. */
    bool (*encode_bytes)(int8_t* out, float* scale, const float* values, float* errors,
                         int64_t count, float most);
    void (*decode_bytes)(float* out, const int8_t* data, float scale, int64_t count);
    /* The same with the floats of SN_SMALL_FLOATS, in the lower half of each byte. */
    bool (*encode_floats)(int8_t* out, float* scale, const float* values, float* errors,
                          int64_t count);
    void (*decode_floats)(float* out, const int8_t* data, float scale, int64_t count);
} sn_code_kernels;

/* The loops for this processor. All give the same results. */
const sn_code_kernels* sn_code_loops(void);

extern const sn_code_kernels sn_codes_baseline, sn_codes_haswell, sn_codes_skylake;

#endif
