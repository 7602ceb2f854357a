/* SN_SPARSE: one chunk of it. */
#ifndef SPARKNET_SPARSE_CODE_H
#define SPARKNET_SPARSE_CODE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SN_CHUNK = 4096,
    SN_KEPT = 64,
    SN_SPARSE_BYTES = 2 * 4 + SN_KEPT * 12 / 8 + SN_KEPT * 2 / 8
};

/* Whether every sum of a value and its error is finite; `errors` receives what is lost. */
bool sn_encode_chunk(char* out, const float* values, float* errors, int64_t count);

void sn_decode_chunk(float* out, const char* data, int64_t count);

#endif
