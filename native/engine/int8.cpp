#include "int8.hpp"

#include <algorithm>
#include <cmath>

#include "net.hpp"
#include "parallel.hpp"

namespace sn {

std::vector<int8_t> round_rows(const float* values, int64_t rows, int64_t columns,
                               std::vector<float>& steps) {
    constexpr float most = 127;
    std::vector<int8_t> made(static_cast<size_t>(rows * columns));
    steps.assign(static_cast<size_t>(rows), 1.0F);
    parallel_each(rows, columns * 4, [=, to = made.data(), by = steps.data()](int64_t r) {
        const float* row = values + r * columns;
        float largest = 0;
        for (int64_t i = 0; i < columns; ++i) largest = std::max(largest, std::fabs(row[i]));
        // A row of zeros, or one with an infinity, has no step.
        if (largest > 0 && std::isfinite(largest)) by[r] = largest / most;
        for (int64_t i = 0; i < columns; ++i) {
            const float number = std::nearbyint(row[i] / by[r]);
            to[r * columns + i] = static_cast<int8_t>(number > most     ? most
                                                      : number >= -most ? number
                                                                        : -most);
        }
    });
    return made;
}

bool may_store_int8(const Layer& layer) {
    const Blob& top = *layer.tops[0];
    const auto& layers = layer.net->layers;
    return top.may_be_int8 &&
           std::none_of(layers.begin() + static_cast<long>(layer.index) + 1, layers.end(),
                        [&](const Layer& later) {
                            return std::count(later.tops.begin(), later.tops.end(), &top) > 0;
                        });
}

}  // namespace sn
