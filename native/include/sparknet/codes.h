/*
 * Codes: float32 numbers in fewer bytes, for what workers send each other.
 *
 * What a code loses is added to what is coded next (error feedback), so coding goes over a
 * buffer and its errors at once. The bits are the same on every processor and for any number
 * of threads, except those of NaN.
 */
#ifndef SPARKNET_CODES_H
#define SPARKNET_CODES_H

#include <sparknet/ndarray.h>
#include <sparknet/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sn_code {
    /* IEEE half precision, rounded to nearest; what is beyond it becomes its largest number. */
    SN_HALVES = 0,
    /*
     * Signed bytes, each block of 256 numbers with a scale, a 127th of its largest magnitude:
     * all scales, as float32, before all bytes; the last block is filled up with zeros. A block
     * with a number that is not finite is NaN when it is decoded.
     */
    SN_BYTES = 1,
    /*
     * Four bits, two numbers a byte, the first one in the lower half; else like SN_BYTES:
     * integers from -7 to 7, the scale a seventh of the block's largest magnitude.
     */
    SN_NIBBLES = 2,
    /*
     * The same with the magnitudes 0, 1/2, 1, 3/2, 2, 3, 4 and 6 (E2M1) and a sign, the scale a
     * sixth of the largest magnitude.
     */
    SN_SMALL_FLOATS = 3,
    /*
     * Of each chunk of 4,096 numbers the 64 of largest magnitude; of equal ones the first. A chunk
     * has two magnitudes as float32, the means of those below and above the mean of all 64; then
     * 64 places in 12 bits, in rising order, and 64 numbers in 2 bits: which magnitude, and the
     * sign. A place behind the last chunk's numbers is none. A chunk with a number that is not
     * finite is NaN when it is decoded.
     */
    SN_SPARSE = 4
} sn_code;

/* The number of bytes that a code of `count` numbers takes. */
SN_API int64_t sn_code_length(sn_code code, int64_t count);

/*
 * `out` receives the code of values + errors, `errors` what the code loses. If one of these errors
 * is not finite, all become 0, so that a NaN does not come back for ever. The arrays are float32,
 * of one shape and without gaps, and must not share memory.
 */
SN_API sn_status sn_encode(void* out, sn_code code, const sn_array* values, sn_array* errors);

/* The numbers of a code, into a float32 array without gaps. */
SN_API sn_status sn_decode(sn_array* out, sn_code code, const void* data);

#ifdef __cplusplus
}
#endif

#endif
