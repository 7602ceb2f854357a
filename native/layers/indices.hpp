// Indices in a blob, checked before they are used.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace sn {

// The index that a value stands for, its fraction dropped as in Caffe; -1 where it is out of range
// or not a number.
inline int64_t index_of(float value, int64_t many) {
    if (!(value > -1.0F && value < 9.0e18F)) return -1;
    const auto index = static_cast<int64_t>(value);
    return index < many ? index : -1;
}

// 7, 2.5, nan …
inline std::string number_text(float value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
    return text;
}

}  // namespace sn
