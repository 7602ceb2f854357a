// Whole rows: copied, summed.
#pragma once

#include <algorithm>

#include "../engine/parallel.hpp"

namespace sn {

// `rows` rows of `width` values between matrices whose rows begin from_step and to_step apart.
inline void copy_rows(const float* from, int64_t from_step, float* to, int64_t to_step,
                      int64_t rows, int64_t width) {
    parallel_each(rows, width,
                  [=](int64_t r) { std::copy_n(from + r * from_step, width, to + r * to_step); });
}

// sums[c] += values[0][c] + values[1][c] + …
inline void add_column_sums(const float* values, int64_t rows, int64_t columns, float* sums) {
    parallel(columns, rows, [=](int64_t begin, int64_t end) {
        constexpr int64_t width = 64;
        double total[width];
        for (int64_t c = begin; c < end; c += width) {
            const int64_t here = std::min(width, end - c);
            std::fill_n(total, here, 0.0);
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t k = 0; k < here; ++k)
                    total[k] += static_cast<double>(values[r * columns + c + k]);
            for (int64_t k = 0; k < here; ++k) sums[c + k] += static_cast<float>(total[k]);
        }
    });
}

}  // namespace sn
