/*
 * The loops themselves. Included once for each instruction set, after a definition of
 * SN_TABLE, the name of the table that is to hold them. (The attribute target_clones does
 * not work here: gcc splits short vectors before it makes the clones.)
 */
#include <math.h>

#include "sums.h"
#include "vectors.h"

enum { WIDE = 4, GROUPS = SN_LANES / WIDE };

/*
 * Sums in double. Element i goes to lane i modulo SN_LANES. The rest at the end is
 * padded with zeros, which add nothing to any of these sums.
 */
#define SUM_OF(type, load, name, expression)                                         \
    SN_INLINE void name##_step(sn_doubles* sum, const type* a, const type* b,        \
                               const double* settings) {                             \
        (void)settings;                                                              \
        _Pragma("GCC unroll 8") for (int group = 0; group < GROUPS; ++group) {       \
            const sn_doubles x = load(a + group * WIDE), y = load(b + group * WIDE); \
            (void)y;                                                                 \
            sum[group] += (expression);                                              \
        }                                                                            \
    }                                                                                \
    static void name(double* lanes, const void* const* in, int64_t count,            \
                     const double* settings) {                                       \
        const type *a = in[0], *b = in[1] == NULL ? in[0] : in[1];                   \
        sn_doubles sum[GROUPS];                                                      \
        memcpy(sum, lanes, sizeof sum);                                              \
        int64_t done = 0;                                                            \
        for (; done + SN_LANES <= count; done += SN_LANES)                           \
            name##_step(sum, a + done, b + done, settings);                          \
        if (done < count) {                                                          \
            type rest[2][SN_LANES] = {{0}};                                          \
            memcpy(rest[0], a + done, (size_t)(count - done) * sizeof *a);           \
            memcpy(rest[1], b + done, (size_t)(count - done) * sizeof *b);           \
            name##_step(sum, rest[0], rest[1], settings);                            \
        }                                                                            \
        memcpy(lanes, sum, sizeof sum);                                              \
    }

#define SUM(name, expression) SUM_OF(float, sn_widen, name, expression)

SUM(fold_sum, x)
SUM(fold_dot, x* y)
SUM(fold_norm2, x* x)
SUM(fold_distance1, sn_magnitude(x - y))
SUM(fold_distance2, (x - y) * (x - y))

/* Counts: comparisons give all ones for true, of which the bits of 1.0 are kept. */
#define COUNTED(mask) ((sn_doubles)((mask) & (sn_longs)((sn_doubles){0} + 1)))
/* Equal infinities do not differ; other infinite gaps do, whatever is tolerated. */
#define GAP sn_magnitude(x - y)
#define NEAR \
    ((x == y) | ((GAP <= settings[1] + settings[0] * sn_magnitude(y)) & (GAP < (double)INFINITY)))

SUM(fold_far_float, COUNTED(~NEAR))
SUM_OF(double, sn_load_doubles, fold_far_double, COUNTED(~NEAR))

/*
 * Counts in float: comparisons give -1 for true. One call brings too few elements for an
 * int32 to overflow. The rest at the end is padded with zeros, which are not counted.
 */
enum { SCANNED = 16, SCANS = SN_LANES / SCANNED };

#define COUNT(name, test)                                                                         \
    SN_INLINE void name##_step(sn_ints* hits, const float* a, const float* b) {                   \
        _Pragma("GCC unroll 2") for (int scan = 0; scan < SCANS; ++scan) {                        \
            const sn_floats x = sn_load(a + scan * SCANNED), y = sn_load(b + scan * SCANNED);     \
            (void)y;                                                                              \
            hits[scan] -= (test);                                                                 \
        }                                                                                         \
    }                                                                                             \
    static void name(double* lanes, const void* const* in, int64_t count,                         \
                     const double* settings) {                                                    \
        (void)settings;                                                                           \
        const float *a = in[0], *b = in[1] == NULL ? in[0] : in[1];                               \
        sn_ints hits[SCANS] = {{0}};                                                              \
        int64_t done = 0;                                                                         \
        for (; done + SN_LANES <= count; done += SN_LANES) name##_step(hits, a + done, b + done); \
        if (done < count) {                                                                       \
            float rest[2][SN_LANES] = {{0}};                                                      \
            memcpy(rest[0], a + done, (size_t)(count - done) * sizeof *a);                        \
            memcpy(rest[1], b + done, (size_t)(count - done) * sizeof *b);                        \
            name##_step(hits, rest[0], rest[1]);                                                  \
        }                                                                                         \
        for (int i = 0; i < SN_LANES; ++i) lanes[i] += hits[i / SCANNED][i % SCANNED];            \
    }

#define EXPONENT 0x7f800000
COUNT(fold_not_finite, ((sn_ints)x & EXPONENT) == EXPONENT)
COUNT(fold_differ, x != y)

/* Extremes, in float. The rest at the end is padded with the last element. */
#define SCAN(name, better)                                                                     \
    SN_INLINE void name##_step(sn_floats* best, sn_ints* nan, const float* a) {                \
        _Pragma("GCC unroll 2") for (int scan = 0; scan < SCANS; ++scan) {                     \
            const sn_floats x = sn_load(a + scan * SCANNED);                                   \
            best[scan] = sn_choose(x better best[scan], x, best[scan]);                        \
            nan[scan] |= x != x;                                                               \
        }                                                                                      \
    }                                                                                          \
    static void name(double* lanes, const void* const* in, int64_t count,                      \
                     const double* settings) {                                                 \
        (void)settings;                                                                        \
        const float* a = in[0];                                                                \
        sn_floats best[SCANS];                                                                 \
        sn_ints nan[SCANS] = {{0}};                                                            \
        for (int i = 0; i < SN_LANES; ++i) best[i / SCANNED][i % SCANNED] = (float)lanes[i];   \
        int64_t done = 0;                                                                      \
        for (; done + SN_LANES <= count; done += SN_LANES) name##_step(best, nan, a + done);   \
        if (done < count) {                                                                    \
            float rest[SN_LANES];                                                              \
            for (int64_t i = 0; i < SN_LANES; ++i)                                             \
                rest[i] = a[done + i < count ? done + i : count - 1];                          \
            name##_step(best, nan, rest);                                                      \
        }                                                                                      \
        for (int i = 0; i < SN_LANES; ++i)                                                     \
            lanes[i] = nan[i / SCANNED][i % SCANNED] ? (double)NAN                             \
                                                     : (double)best[i / SCANNED][i % SCANNED]; \
    }

SCAN(fold_min, <)
SCAN(fold_max, >)

static void add_weighted(double* sum, float* out, const float* const* in, const double* weights,
                         int arrays, int64_t count, bool first) {
    int64_t start = 0;
    for (; start + SN_LANES <= count; start += SN_LANES) {
        sn_doubles group[GROUPS] = {{0}};
        if (!first) memcpy(group, sum + start, sizeof group);
        for (int k = 0; k < arrays; ++k)
            _Pragma("GCC unroll 8") for (int i = 0; i < GROUPS; ++i) group[i] +=
                weights[k] * sn_widen(in[k] + start + i * WIDE);
        if (out == NULL)
            memcpy(sum + start, group, sizeof group);
        else
            _Pragma("GCC unroll 8") for (int i = 0; i < GROUPS; ++i)
                sn_narrow(out + start + i * WIDE, group[i]);
    }
    for (int64_t i = start; i < count; ++i) {
        double total = first ? 0 : sum[i];
        for (int k = 0; k < arrays; ++k) total += weights[k] * (double)in[k][i];
        if (out == NULL)
            sum[i] = total;
        else
            out[i] = (float)total;
    }
}

const sn_sum_kernels SN_TABLE = {
    fold_sum,    fold_dot,       fold_norm2,      fold_distance1, fold_distance2, fold_not_finite,
    fold_differ, fold_far_float, fold_far_double, fold_min,       fold_max,       add_weighted,
};
