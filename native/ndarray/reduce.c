/* Sums, norms, distances and extremes. */
#include <math.h>

#include "fold.h"
#include "kernel.h"
#include "map.h"

/* Element i goes to lane i modulo SN_LANES. */
#define FOLD(name, statement) FOLD_OF(float, name, statement)

#define FOLD_OF(type, name, statement)                                                 \
    SN_KERNEL static void name(double* lanes, const void* const* in, int64_t count,    \
                               const double* settings) {                               \
        const type *a = in[0], *b = in[1];                                             \
        (void)b, (void)settings;                                                       \
        double sum[SN_LANES];                                                          \
        for (int lane = 0; lane < SN_LANES; ++lane) sum[lane] = lanes[lane];           \
        int64_t first = 0;                                                             \
        for (; first + SN_LANES <= count; first += SN_LANES) SN_EACH(lane, SN_LANES) { \
                const int64_t i = first + lane;                                        \
                statement;                                                             \
            }                                                                          \
        for (int64_t lane = 0; first + lane < count; ++lane) {                         \
            const int64_t i = first + lane;                                            \
            statement;                                                                 \
        }                                                                              \
        for (int lane = 0; lane < SN_LANES; ++lane) lanes[lane] = sum[lane];           \
    }

static inline double smaller(double a, double b) {
    return b < a || b != b ? b : a;
}
static inline double larger(double a, double b) {
    return b > a || b != b ? b : a;
}
static double add(double a, double b) {
    return a + b;
}
static double join_smaller(double a, double b) {
    return a != a ? a : smaller(a, b);
}
static double join_larger(double a, double b) {
    return a != a ? a : larger(a, b);
}

#define A ((double)a[i])
#define B ((double)b[i])

FOLD(fold_sum, sum[lane] += A)
FOLD(fold_dot, sum[lane] += A * B)
FOLD(fold_norm1, sum[lane] += fabs(A))
FOLD(fold_norm2, sum[lane] += A * A)
FOLD(fold_distance1, sum[lane] += fabs(A - B))
FOLD(fold_distance2, sum[lane] += (A - B) * (A - B))
FOLD(fold_not_finite, sum[lane] += A - A == 0 ? 0.0 : 1.0)
FOLD(fold_min, sum[lane] = sum[lane] != sum[lane] ? sum[lane] : smaller(sum[lane], A))
FOLD(fold_max, sum[lane] = sum[lane] != sum[lane] ? sum[lane] : larger(sum[lane], A))
FOLD(fold_max_abs, sum[lane] = sum[lane] != sum[lane] ? sum[lane] : larger(sum[lane], fabs(A)))

static sn_status reduce(double* out, sn_fold_kernel kernel, sn_join join, double start,
                        const sn_array* a, const sn_array* b) {
    const sn_fold fold = {kernel, join, start, {0, 0}, SN_FLOAT32};
    sn_status status = sn_check_float32(a);
    if (status == SN_OK && b != NULL) status = sn_check_float32(b);
    return status == SN_OK ? sn_fold_run(out, &fold, a, b) : status;
}

sn_status sn_sum(double* out, const sn_array* a) {
    return reduce(out, fold_sum, add, 0, a, NULL);
}

sn_status sn_dot(double* out, const sn_array* a, const sn_array* b) {
    return reduce(out, fold_dot, add, 0, a, b);
}

sn_status sn_norm1(double* out, const sn_array* a) {
    return reduce(out, fold_norm1, add, 0, a, NULL);
}

sn_status sn_norm2(double* out, const sn_array* a) {
    double squares;
    const sn_status status = reduce(&squares, fold_norm2, add, 0, a, NULL);
    if (status == SN_OK) *out = sqrt(squares);
    return status;
}

sn_status sn_distance1(double* out, const sn_array* a, const sn_array* b) {
    return reduce(out, fold_distance1, add, 0, a, b);
}

sn_status sn_distance2(double* out, const sn_array* a, const sn_array* b) {
    double squares;
    const sn_status status = reduce(&squares, fold_distance2, add, 0, a, b);
    if (status == SN_OK) *out = sqrt(squares);
    return status;
}

static sn_status check_not_empty(const sn_array* a, const char* what) {
    if (a->size > 0) return SN_OK;
    return sn_fail(SN_ERROR_ARRAY, "an empty array has no %s", what);
}

sn_status sn_min(double* out, const sn_array* a) {
    const sn_status status = check_not_empty(a, "minimum");
    return status == SN_OK ? reduce(out, fold_min, join_smaller, INFINITY, a, NULL) : status;
}

sn_status sn_max(double* out, const sn_array* a) {
    const sn_status status = check_not_empty(a, "maximum");
    return status == SN_OK ? reduce(out, fold_max, join_larger, -INFINITY, a, NULL) : status;
}

sn_status sn_max_abs(double* out, const sn_array* a) {
    return reduce(out, fold_max_abs, join_larger, 0, a, NULL);
}

sn_status sn_count_not_finite(int64_t* out, const sn_array* a) {
    double count;
    const sn_status status = reduce(&count, fold_not_finite, add, 0, a, NULL);
    if (status == SN_OK) *out = (int64_t)count;
    return status;
}

/* Equal infinities do not differ; any other infinite difference is beyond all tolerance. */
#define GAP fabs(A - B)
#define FAR                                                                                       \
    (a[i] == b[i] || (GAP <= settings[1] + settings[0] * fabs(B) && GAP < (double)INFINITY) ? 0.0 \
                                                                                            : 1.0)

FOLD_OF(float, fold_far_float, sum[lane] += FAR)
FOLD_OF(double, fold_far_double, sum[lane] += FAR)

sn_status sn_count_far(int64_t* out, const sn_array* a, const sn_array* b, double relative,
                       double absolute) {
    if (!(relative >= 0) || !(absolute >= 0))
        return sn_fail(SN_ERROR_ARRAY, "a tolerance of %g is negative or not a number",
                       relative >= 0 ? absolute : relative);
    const bool plain = a->dtype == SN_FLOAT32 && b->dtype == SN_FLOAT32;
    const sn_fold fold = {plain ? fold_far_float : fold_far_double,
                          add,
                          0,
                          {relative, absolute},
                          plain ? SN_FLOAT32 : SN_FLOAT64};
    double count;
    const sn_status status = sn_fold_run(&count, &fold, a, b);
    if (status == SN_OK) *out = (int64_t)count;
    return status;
}
