/*
 * Strided arrays over shared storage, and the arithmetic that averaging models needs.
 *
 * An sn_array is an immutable description (data type, shape, strides, first
 * element) of memory that a counted storage holds. Storage is owned memory, memory
 * borrowed from somebody else, or a mapped file. A view is a new sn_array over the
 * same storage; the storage goes when the last array over it is freed. No array
 * reaches outside its storage: that is checked when the array is made, so later
 * calls need no checks beyond their own arguments.
 *
 * Arrays may be used from several threads at once. Elements have no lock: two
 * threads that write the same elements, or one that writes what another reads,
 * must synchronise themselves.
 *
 * Sizes count elements, strides and offsets into files count bytes. Elements are
 * visited in row-major order: the last axis moves fastest.
 */
#ifndef SPARKNET_NDARRAY_H
#define SPARKNET_NDARRAY_H

#include <sparknet/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* SN_MAX_DIMS bounds the number of axes. */
enum { SN_MAX_DIMS = 32 };

/* float32 is the type of all arithmetic; the others are for storage and conversion. */
typedef enum sn_dtype {
    SN_FLOAT32 = 0,
    SN_FLOAT64 = 1,
    SN_INT32 = 2,
    SN_UINT8 = 3,
    SN_INT8 = 4
} sn_dtype;

typedef struct sn_array sn_array;

/* What an array is; filled by sn_array_describe. */
typedef struct sn_layout {
    void* data;
    sn_dtype dtype;
    int ndim;
    int readonly;
    /* Row-major without gaps. */
    int contiguous;
    int64_t size;
    int64_t shape[32];
    int64_t strides[32];
} sn_layout;

/* ---- Making arrays ------------------------------------------------------------ */

/*
 * Owned memory, aligned to 64 bytes. With `zeroed` every element is 0; large
 * arrays are zeroed lazily by the system, so that untouched pages cost nothing.
 */
SN_API sn_status sn_array_create(sn_array** out, sn_dtype dtype, int ndim, const int64_t* shape,
                                 int zeroed);

/* Called once, from any thread, when borrowed memory is no longer needed. */
typedef void (*sn_release)(void* context);

/*
 * An array over the caller's memory. `strides` may be NULL for row-major without gaps, and
 * may hold any multiples of the element size, negative and 0 among them; `data` is
 * the first element. The caller keeps the whole range accessible until
 * `release` (which may be NULL) is called. On failure it is not called.
 */
SN_API sn_status sn_array_borrow(sn_array** out, void* data, sn_dtype dtype, int ndim,
                                 const int64_t* shape, const int64_t* strides, int readonly,
                                 sn_release release, void* context);

typedef enum sn_map_mode {
    /* The file cannot be changed through the array. */
    SN_MAP_READ = 0,
    /* Writes go to the file and are seen by every process that maps it. */
    SN_MAP_SHARED = 1,
    /* Writes stay in this array; the file is opened for reading only. */
    SN_MAP_COPY = 2,
    /* As SHARED, but the file is made, or cut, to the size that the array needs; zeros. */
    SN_MAP_CREATE = 3
} sn_map_mode;

/*
 * A part of a file, mapped: pages are read when they are touched. `offset` is a
 * multiple of the element size. The file must reach to the array's end when it is
 * mapped; that is checked. If somebody cuts the file short later, touching
 * the lost pages kills the process with SIGBUS: replace mapped files by renaming,
 * never by truncating.
 */
SN_API sn_status sn_array_map(sn_array** out, const char* path, sn_dtype dtype, int ndim,
                              const int64_t* shape, sn_map_mode mode, int64_t offset);

/* Waits until a shared mapping's writes are on the disk; does nothing for other storage. */
SN_API sn_status sn_array_flush(const sn_array* array);

/* Frees the array; NULL is ignored. Its storage lives on while other arrays use it. */
SN_API void sn_array_free(sn_array* array);

SN_API void sn_array_describe(sn_layout* out, const sn_array* array);

/* How many storages there are in this process: for tests that look for leaks. */
SN_API int64_t sn_live_storages(void);

/* ---- Views: no element is copied ----------------------------------------------- */

/*
 * Takes on every axis `sizes[i]` elements from `starts[i]` on, `steps[i]` apart.
 * `steps` may be NULL for 1 everywhere; a step may be negative, not 0.
 */
SN_API sn_status sn_array_slice(sn_array** out, const sn_array* array, const int64_t* starts,
                                const int64_t* sizes, const int64_t* steps);

/* The array at position `index` of `axis`; it has one axis less. */
SN_API sn_status sn_array_index(sn_array** out, const sn_array* array, int axis, int64_t index);

/* The array without the named axes, each of which must have size 1. */
SN_API sn_status sn_array_squeeze(sn_array** out, const sn_array* array, int count,
                                  const int* axes);

/* Axis i of the result is axis `axes[i]` of the array; each occurs once. */
SN_API sn_status sn_array_transpose(sn_array** out, const sn_array* array, const int* axes);

/*
 * The same elements in the same order under another shape. A view where the strides
 * allow it; else, unless `view_only`, a copy.
 */
SN_API sn_status sn_array_reshape(sn_array** out, const sn_array* array, int ndim,
                                  const int64_t* shape, int view_only);

/* A view that cannot be written through. */
SN_API sn_status sn_array_freeze(sn_array** out, const sn_array* array);

/* ---- Whether elements have changed ---------------------------------------------- */

/*
 * Something that was computed from an array's elements is valid as long as this number is the same:
 * every call that writes to the array's storage, through any array, changes the number at its end.
 * It is 0 for memory that is borrowed, mapped or lent: writes there go unnoticed at any time, so
 * nothing computed from it may be kept.
 */
SN_API uint64_t sn_array_version(const sn_array* array);

/*
 * A view for a caller that will write through sn_layout.data, or pass that pointer on: until the
 * view is freed the storage has no version, and afterwards a new one.
 */
SN_API sn_status sn_array_lend(sn_array** out, const sn_array* array);

/* ---- Elements ------------------------------------------------------------------ */

/*
 * Conversion between data types, here and in every call below: a floating number
 * that becomes an integer loses its fraction, NaN becomes 0, and what lies outside
 * the type's range becomes the nearest end of the range. float64 to float32 rounds
 * to nearest and may overflow to infinity.
 *
 * Writing to an array is refused if two of its elements may share memory, as with
 * a stride of 0.
 */
SN_API sn_status sn_array_get(double* out, const sn_array* array, const int64_t* index);
SN_API sn_status sn_array_set(sn_array* array, const int64_t* index, double value);
SN_API sn_status sn_array_fill(sn_array* array, double value);

/* Of one shape, of any two types and strides; the arrays may overlap. */
SN_API sn_status sn_array_copy(sn_array* out, const sn_array* array);

/* ---- Arithmetic: float32, one shape, any strides ----------------------------------- */

/*
 * `out` may be one of the operands, and may overlap them in any way: the result
 * is what it would be if the operands had been copied first. Products and sums are
 * rounded one by one (no fused multiply-add), so results are the same on every
 * processor.
 */
SN_API sn_status sn_add(sn_array* out, const sn_array* a, const sn_array* b);
SN_API sn_status sn_subtract(sn_array* out, const sn_array* a, const sn_array* b);
SN_API sn_status sn_multiply(sn_array* out, const sn_array* a, const sn_array* b);

/* out = factor a + term */
SN_API sn_status sn_scale(sn_array* out, const sn_array* a, float factor, float term);

/* y = y + a x */
SN_API sn_status sn_axpy(sn_array* y, float a, const sn_array* x);

/* y = a x + b y; with b = 0 the old y is not read. */
SN_API sn_status sn_axpby(sn_array* y, float a, const sn_array* x, float b);

/*
 * out = (sum of weights[i] arrays[i]) / (sum of weights), in one pass, summed in double.
 * `weights` may be NULL: all equal. Their sum must be finite and not 0.
 */
SN_API sn_status sn_weighted_mean(sn_array* out, int count, const sn_array* const* arrays,
                                  const double* weights);

/* ---- Reductions: float32, summed in double ----------------------------------------- */

SN_API sn_status sn_sum(double* out, const sn_array* a);
SN_API sn_status sn_dot(double* out, const sn_array* a, const sn_array* b);
SN_API sn_status sn_norm2(double* out, const sn_array* a);
SN_API sn_status sn_distance1(double* out, const sn_array* a, const sn_array* b);
SN_API sn_status sn_distance2(double* out, const sn_array* a, const sn_array* b);

/* NaN when there is a NaN. An empty array has no minimum and no maximum: an error. */
SN_API sn_status sn_min(double* out, const sn_array* a);
SN_API sn_status sn_max(double* out, const sn_array* a);

/* How many elements are NaN or infinite. */
SN_API sn_status sn_count_not_finite(int64_t* out, const sn_array* a);

/*
 * How many elements differ by more than `absolute` + `relative` |b|; NaN differs from
 * everything, equal infinities do not differ. Arrays of any types; integers compare
 * exactly.
 */
SN_API sn_status sn_count_far(int64_t* out, const sn_array* a, const sn_array* b, double relative,
                              double absolute);

#ifdef __cplusplus
}
#endif

#endif
