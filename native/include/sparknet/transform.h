/*
 * Records of data sources: reads Datum messages and makes batches of them.
 *
 * A record is where the values of one item lie, and how far apart: bytes or
 * floats, channel by channel or pixel by pixel, in any order of channels. A caller
 * that fills in a record keeps its memory alive.
 */
#ifndef SPARKNET_TRANSFORM_H
#define SPARKNET_TRANSFORM_H

#include <sparknet/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sn_record_kind {
    SN_RECORD_BYTES = 0,
    SN_RECORD_FLOATS = 1,
    /* A compressed image of `size` bytes at `values`. */
    SN_RECORD_ENCODED = 2,
    /* Floats in several places: the caller reads them by other means. */
    SN_RECORD_SCATTERED = 3
} sn_record_kind;

typedef struct sn_record {
    const void* values;
    /* Bytes from one value to the next along each axis; may be negative. */
    int64_t channel_step, row_step, column_step;
    int64_t channels, height, width;
    int64_t label;
    int64_t kind;
    int64_t size;
} sn_record;

/*
 * Finds the values of `count` Datum messages that lie in one memory of `size` bytes.
 * On SN_ERROR_ARRAY `failed` is the number of the first that is no Datum, or whose values do not
 * fit its shape; the caller puts a name before the error message.
 */
SN_API sn_status sn_scan_datums(sn_record* out, int64_t* failed, const void* memory, int64_t size,
                                int64_t count, const int64_t* offsets, const int64_t* sizes);

typedef struct sn_transform {
    /* The shape of one item of the batch. */
    int64_t channels, height, width;
    /* Crop to that height and width: at random, else in the middle. Else records have that size. */
    int crop, random_crop;
    /* Mirror half of the items, chosen at random. */
    int mirror;
    /* One a channel. */
    const float* scales;
    /* Subtracted: an image of the records' size or the crop's, or NULL and one value a channel. */
    const float* mean;
    int64_t mean_height, mean_width;
    const float* mean_values;
    uint64_t seed;
} sn_transform;

/*
 * Writes `count` items: (value - mean) * scale, mirrored. Item i draws the random numbers of
 * item first + i, whatever the batch. On SN_ERROR_ARRAY `failed` is the number of a
 * record that does not fit. Without `threaded` all work stays on this thread.
 */
SN_API sn_status sn_transform_records(float* out, int64_t* failed, const sn_transform* how,
                                      int64_t count, const sn_record* records, uint64_t first,
                                      int threaded);

/*
 * Resizes an image of bytes, pixel by pixel, with linear interpolation; the numbers
 * are those of OpenCV's cv::resize.
 */
SN_API sn_status sn_resize_image(uint8_t* out, int64_t height, int64_t width, const uint8_t* in,
                                 int64_t in_height, int64_t in_width, int64_t channels);

/* What each place along an axis of an image is made of: the weighted sum of `taps` others. */
typedef struct sn_axis {
    int64_t size, taps;
    /* size x taps; where to look, between 0 and the input's size. */
    const int32_t* at;
    const float* weights;
} sn_axis;

typedef struct sn_resample {
    sn_axis rows, columns;
    /*
     * The weights of a place may sum to less than 1: the rest counts as the image's smallest value.
     * No output lies outside the image's values.
     */
    int bounded;
} sn_resample;

/*
 * Resamples an image pixel by pixel, rows of sums over columns. Bytes or floats go in, floats come
 * out; or bytes, rounded to the nearest, half to even.
 */
SN_API sn_status sn_resample_image(void* out, sn_record_kind out_kind, const sn_resample* how,
                                   const void* in, sn_record_kind in_kind, int64_t in_height,
                                   int64_t in_width, int64_t channels);

/* Decodes snappy's elements, without the length before them, to exactly `size` bytes. */
SN_API sn_status sn_snappy_decode(uint8_t* out, int64_t size, const uint8_t* in, int64_t in_size);

/*
 * Places of a permutohedral lattice: where the corners of each point's simplex are, and how much of
 * the point each has (corners x points), and of each axis the neighbours before and after each
 * place (corners x 2 x size); `size` stands for a neighbour that is not there.
 */
typedef struct sn_lattice {
    int64_t corners, points, size;
    const int32_t* places;
    const double* shares;
    const int32_t* neighbours;
    double scale;
} sn_lattice;

/*
 * Rows of a value for each point, blurred: shared among the corners, blurred along the axes, read
 * where the points lie. `transposed` blurs along the axes in the other order: the adjoint.
 */
SN_API sn_status sn_lattice_filter(double* out, const double* in, int64_t rows,
                                   const sn_lattice* lattice, int transposed);

/* CRC-32C of some bytes. */
SN_API uint32_t sn_crc32c(const uint8_t* in, int64_t size);

/*
 * Guards the memory of a file that is mapped for reading: where the file was cut short, or its disk
 * fails, zeros are read instead of the process ending. A number for the other two; -1 where too
 * many are guarded.
 */
SN_API int sn_guard_pages(const void* memory, int64_t size);
SN_API void sn_unguard_pages(int number);
/* Whether some of it was lost. */
SN_API int sn_pages_lost(int number);

#ifdef __cplusplus
}
#endif

#endif
