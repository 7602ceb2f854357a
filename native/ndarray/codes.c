#include "codes.h"

#include <sparknet/codes.h>
#include <stdatomic.h>

#include "array.h"
#include "map.h"
#include "processor.h"
#include "sparse_code.h"
#include "threads.h"

/* Numbers that a thread takes at once: whole blocks of all codes. */
enum { TAKEN = SN_CHUNK };

typedef struct code_job {
    const sn_code_kernels* loops;
    sn_code code;
    int64_t size;
    const float* values;
    float* floats;
    char* out;
    const char* data;
    atomic_bool infinite;
} code_job;

const sn_code_kernels* sn_code_loops(void) {
    return SN_BEST(&sn_codes_baseline, &sn_codes_haswell, &sn_codes_skylake);
}

static int64_t scales_of(int64_t count) {
    return (count + SN_SCALED - 1) / SN_SCALED;
}

int64_t sn_code_length(sn_code code, int64_t count) {
    switch (code) {
        case SN_HALVES:
            return count * (int64_t)sizeof(uint16_t);
        case SN_BYTES:
            return scales_of(count) * ((int64_t)sizeof(float) + SN_SCALED);
        case SN_SPARSE:
            return (count + SN_CHUNK - 1) / SN_CHUNK * SN_SPARSE_BYTES;
        default:
            return scales_of(count) * ((int64_t)sizeof(float) + SN_SCALED / 2);
    }
}

static int64_t up_to(int64_t most, int64_t count) {
    return count < most ? count : most;
}

static void pack(uint8_t* out, const int8_t* codes) {
    for (int i = 0; i < SN_SCALED / 2; ++i)
        out[i] = (uint8_t)((codes[2 * i] & 15) | (codes[2 * i + 1] & 15) << 4);
}

/* `sign` is 8 where the highest of four bits is a sign of the integer, else 0. */
static void unpack(int8_t* codes, const uint8_t* data, int sign) {
    for (int i = 0; i < SN_SCALED / 2; ++i) {
        codes[2 * i] = (int8_t)(((data[i] & 15) ^ sign) - sign);
        codes[2 * i + 1] = (int8_t)((data[i] >> 4 ^ sign) - sign);
    }
}

/* A block of a code with scales. */
static bool encode_block(const code_job* job, int64_t start, int64_t count) {
    float* scale = (float*)job->out + start / SN_SCALED;
    char* codes = job->out + scales_of(job->size) * (int64_t)sizeof(float);
    const float* values = job->values + start;
    float* errors = job->floats + start;
    if (job->code == SN_BYTES)
        return job->loops->encode_bytes((int8_t*)codes + start, scale, values, errors, count, 127);
    int8_t block[SN_SCALED];
    const bool finite = job->code == SN_NIBBLES
                            ? job->loops->encode_bytes(block, scale, values, errors, count, 7)
                            : job->loops->encode_floats(block, scale, values, errors, count);
    pack((uint8_t*)codes + start / 2, block);
    return finite;
}

static void decode_block(const code_job* job, int64_t start, int64_t count) {
    const float scale = ((const float*)job->data)[start / SN_SCALED];
    const char* codes = job->data + scales_of(job->size) * (int64_t)sizeof(float);
    float* out = job->floats + start;
    if (job->code == SN_BYTES) {
        job->loops->decode_bytes(out, (const int8_t*)codes + start, scale, count);
        return;
    }
    int8_t block[SN_SCALED];
    const bool is_whole = job->code == SN_NIBBLES;
    unpack(block, (const uint8_t*)codes + start / 2, is_whole ? 8 : 0);
    (is_whole ? job->loops->decode_bytes : job->loops->decode_floats)(out, block, scale, count);
}

static bool encode_part(const code_job* job, int64_t start, int64_t count) {
    const float* values = job->values + start;
    float* errors = job->floats + start;
    if (job->code == SN_HALVES)
        return job->loops->encode_halves((uint16_t*)job->out + start, values, errors, count);
    if (job->code == SN_SPARSE)
        return sn_encode_chunk(job->out + start / SN_CHUNK * SN_SPARSE_BYTES, values, errors,
                               count);
    bool finite = true;
    for (int64_t i = 0; i < count; i += SN_SCALED)
        finite = encode_block(job, start + i, up_to(SN_SCALED, count - i)) && finite;
    return finite;
}

static void decode_part(const code_job* job, int64_t start, int64_t count) {
    float* out = job->floats + start;
    if (job->code == SN_HALVES)
        job->loops->decode_halves(out, (const uint16_t*)job->data + start, count);
    else if (job->code == SN_SPARSE)
        sn_decode_chunk(out, job->data + start / SN_CHUNK * SN_SPARSE_BYTES, count);
    else
        for (int64_t i = 0; i < count; i += SN_SCALED)
            decode_block(job, start + i, up_to(SN_SCALED, count - i));
}

static void encode_parts(void* context, int64_t begin, int64_t end) {
    code_job* job = context;
    for (int64_t part = begin; part < end; ++part)
        if (!encode_part(job, part * TAKEN, up_to(TAKEN, job->size - part * TAKEN)))
            atomic_store(&job->infinite, true);
}

static void decode_parts(void* context, int64_t begin, int64_t end) {
    const code_job* job = context;
    for (int64_t part = begin; part < end; ++part)
        decode_part(job, part * TAKEN, up_to(TAKEN, job->size - part * TAKEN));
}

static void run(code_job* job, sn_body body) {
    job->loops = sn_code_loops();
    sn_parallel((job->size + TAKEN - 1) / TAKEN, job->size, body, job);
}

static sn_status check(sn_code code, const sn_array* array, const void* bytes) {
    if (code < SN_HALVES || code > SN_SPARSE)
        return sn_fail(SN_ERROR_ARRAY, "there is no code number %d", (int)code);
    if (bytes == NULL && array->size > 0)
        return sn_fail(SN_ERROR_ARRAY, "a code needs memory of its own");
    if ((uintptr_t)bytes % sizeof(float) != 0)
        return sn_fail(SN_ERROR_ARRAY, "a code begins at a multiple of 4 bytes");
    if (!array->contiguous) return sn_fail(SN_ERROR_ARRAY, "codes are of arrays without gaps");
    return sn_check_float32(array);
}

sn_status sn_encode(void* out, sn_code code, const sn_array* values, sn_array* errors) {
    sn_status status = check(code, values, out);
    if (status == SN_OK) status = check(code, errors, out);
    if (status == SN_OK) status = sn_check_same_shape(values, errors);
    if (status == SN_OK) status = sn_check_writable(errors);
    if (status == SN_OK && sn_may_overlap(values, errors))
        status = sn_fail(SN_ERROR_ARRAY, "the errors of a code share memory with its values");
    if (status != SN_OK || values->size == 0) return status;
    code_job job = {.code = code,
                    .size = values->size,
                    .values = (const float*)values->data,
                    .floats = (float*)errors->data,
                    .out = out};
    run(&job, encode_parts);
    sn_storage_changed(errors->storage);
    return job.infinite ? sn_array_fill(errors, 0) : SN_OK;
}

sn_status sn_decode(sn_array* out, sn_code code, const void* data) {
    sn_status status = check(code, out, data);
    if (status == SN_OK) status = sn_check_writable(out);
    if (status != SN_OK || out->size == 0) return status;
    code_job job = {.code = code, .size = out->size, .floats = (float*)out->data, .data = data};
    run(&job, decode_parts);
    sn_storage_changed(out->storage);
    return SN_OK;
}
