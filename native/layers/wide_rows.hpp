// The sums and formulas of a normalisation over whole rows of many channels, as they lie in
// memory where channels come last.
#pragma once

#include <cstdint>

namespace sn {

// `rows` rows of `width` values, and the operands of each value of a row.
struct WideRows {
    const float* x = nullptr;
    const float* dy = nullptr;
    float* to = nullptr;
    int64_t rows = 0, width = 0;
    const float *mean = nullptr, *factor = nullptr, *shift = nullptr;
    const float *middle = nullptr, *slant = nullptr;
    float least = 1;  // the slope below zero: 1 without a ReLU
};

// Of every column the mean and the squared distances from it.
void wide_moments(const WideRows& all, float* mean, float* squares);
// The sum of g, and that of g * (x - mean), where g is what of dy passes the ReLU.
void wide_products(const WideRows& all, float* sums, float* with_x);
void wide_scale(const WideRows& all);
void wide_differentiate(const WideRows& all);

}  // namespace sn
