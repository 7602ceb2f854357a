// Regions of images: rows of image, x1, y1, x2, y2 (Fast R-CNN), checked before they are used.
#pragma once

#include <cmath>

#include "../../engine/layer.hpp"
#include "../../layers/indices.hpp"

namespace sn {

// The image of region n; refuses one that there is not, and corners that are no numbers.
inline int64_t image_of(const Layer& layer, const float* region, size_t n, int64_t images) {
    const int64_t image = index_of(region[0], images);
    if (image < 0)
        layer.refuse("region " + std::to_string(n) + " is of image " + number_text(region[0]) +
                     ": there are " + std::to_string(images));
    for (int i = 1; i < 5; ++i)
        if (std::isnan(region[i]))
            layer.refuse("corner " + std::to_string(i - 1) + " of region " + std::to_string(n) +
                         " is nan");
    return image;
}

// A coordinate that fits an int64_t and float arithmetic.
inline float bounded(float at) {
    constexpr float far = 1.0e9F;
    return at > far ? far : (at > -far ? at : -far);
}

}  // namespace sn
