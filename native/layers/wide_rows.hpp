// The sums and formulas of a normalisation over whole rows of many channels, as they lie in
// memory where channels come last.
#pragma once

#include <cstdint>

#include "../engine/bfloat16.hpp"

namespace sn {

// `rows` rows of `width` values, of float or BFloat16, and the operands of each value of a row.
template <class T>
struct WideRows {
    const T* x = nullptr;
    const T* dy = nullptr;
    T* to = nullptr;
    int64_t rows = 0, width = 0;
    const float *mean = nullptr, *factor = nullptr, *shift = nullptr;
    const float *middle = nullptr, *slant = nullptr;
    float least = 1;  // the slope below zero: 1 without a ReLU
};

// Of every column the mean and the squared distances from it.
template <class T>
void wide_moments(const WideRows<T>& all, float* mean, float* squares);
// The sum of g, and that of g * (x - mean), where g is what of dy passes the ReLU.
template <class T>
void wide_products(const WideRows<T>& all, float* sums, float* with_x);
template <class T>
void wide_scale(const WideRows<T>& all);
template <class T>
void wide_differentiate(const WideRows<T>& all);

}  // namespace sn
