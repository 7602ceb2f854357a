/* Sums, norms, distances and extremes. */
#include <math.h>

#include "fold.h"
#include "map.h"
#include "sums.h"

static double join_sums(double a, double b) {
    return a + b;
}
static double join_smaller(double a, double b) {
    return a != a || a < b ? a : b;
}
static double join_larger(double a, double b) {
    return a != a || a > b ? a : b;
}

static sn_status reduce(double* out, sn_fold_kernel kernel, sn_join join, double start,
                        const sn_array* a, const sn_array* b) {
    const sn_fold fold = {kernel, join, start, {0, 0}, SN_FLOAT32};
    sn_status status = sn_check_float32(a);
    if (status == SN_OK && b != NULL) status = sn_check_float32(b);
    return status == SN_OK ? sn_fold_run(out, &fold, a, b) : status;
}

sn_status sn_sum(double* out, const sn_array* a) {
    return reduce(out, sn_sums()->sum, join_sums, 0, a, NULL);
}

sn_status sn_dot(double* out, const sn_array* a, const sn_array* b) {
    return reduce(out, sn_sums()->dot, join_sums, 0, a, b);
}

sn_status sn_norm2(double* out, const sn_array* a) {
    double squares;
    const sn_status status = reduce(&squares, sn_sums()->norm2, join_sums, 0, a, NULL);
    if (status == SN_OK) *out = sqrt(squares);
    return status;
}

sn_status sn_distance1(double* out, const sn_array* a, const sn_array* b) {
    return reduce(out, sn_sums()->distance1, join_sums, 0, a, b);
}

sn_status sn_distance2(double* out, const sn_array* a, const sn_array* b) {
    double squares;
    const sn_status status = reduce(&squares, sn_sums()->distance2, join_sums, 0, a, b);
    if (status == SN_OK) *out = sqrt(squares);
    return status;
}

static sn_status check_not_empty(const sn_array* a, const char* what) {
    if (a->size > 0) return SN_OK;
    return sn_fail(SN_ERROR_ARRAY, "an empty array has no %s", what);
}

sn_status sn_min(double* out, const sn_array* a) {
    const sn_status status = check_not_empty(a, "minimum");
    return status == SN_OK ? reduce(out, sn_sums()->min, join_smaller, INFINITY, a, NULL) : status;
}

sn_status sn_max(double* out, const sn_array* a) {
    const sn_status status = check_not_empty(a, "maximum");
    return status == SN_OK ? reduce(out, sn_sums()->max, join_larger, -INFINITY, a, NULL) : status;
}

sn_status sn_count_not_finite(int64_t* out, const sn_array* a) {
    double count;
    const sn_status status = reduce(&count, sn_sums()->not_finite, join_sums, 0, a, NULL);
    if (status == SN_OK) *out = (int64_t)count;
    return status;
}

sn_status sn_count_far(int64_t* out, const sn_array* a, const sn_array* b, double relative,
                       double absolute) {
    if (!(relative >= 0) || !(absolute >= 0))
        return sn_fail(SN_ERROR_ARRAY, "a tolerance of %g is negative or not a number",
                       relative >= 0 ? absolute : relative);
    const bool plain = a->dtype == SN_FLOAT32 && b->dtype == SN_FLOAT32;
    const bool exact = relative == 0 && absolute == 0;
    const sn_fold fold = {!plain  ? sn_sums()->far_double
                          : exact ? sn_sums()->differ
                                  : sn_sums()->far_float,
                          join_sums,
                          0,
                          {relative, absolute},
                          plain ? SN_FLOAT32 : SN_FLOAT64};
    double count;
    const sn_status status = sn_fold_run(&count, &fold, a, b);
    if (status == SN_OK) *out = (int64_t)count;
    return status;
}
