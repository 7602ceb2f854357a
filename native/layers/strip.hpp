// The sums and formulas of a normalisation over a few channels that lie side by side, as in
// oneDNN's blocked layouts, or over the values of one.  wide_rows.hpp is for more of them.
#pragma once

#include <cstdint>

#include "../engine/bfloat16.hpp"

namespace sn {

// Rows of `width` values, of float or BFloat16, each `stride` after the one before, and the
// operands of each lane.
template <class T>
struct Strip {
    static constexpr int64_t most = 16;  // lanes that the loops take at once

    const T* x;
    const T* dy;
    T* to;
    int64_t rows, stride, width;
    float mean[most], factor[most], shift[most], middle[most], slant[most];
    float least;  // the slope below zero: 1 without a ReLU
};

// Of every lane the mean and the squared distances from it.
template <class T>
void strip_moments(const Strip<T>& s, float* mean, float* squares);
// Of every lane the sum of g, and that of g * (x - mean), where g is what of dy passes the ReLU.
template <class T>
void strip_products(const Strip<T>& s, float* sums, float* with_x);
template <class T>
void strip_scale(const Strip<T>& s);
template <class T>
void strip_differentiate(const Strip<T>& s);

}  // namespace sn
