// e^x as plain arithmetic, so that loops over it are vectorised; within 2 units in the last
// place.  Overflow gives infinity, NaN stays NaN (oneDNN 3.2 makes infinity of it), and results
// below the smallest normal number are zero.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

namespace sn {

namespace exponential {
[[gnu::always_inline]] inline float power_of_two(int32_t exponent) {
    const auto bits = static_cast<uint32_t>(exponent + 127) << 23;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
}  // namespace exponential

[[gnu::always_inline]] inline float fast_exp(float x) {
    constexpr float shifter = 12582912.0F;  // 1.5 · 2^23: adding it rounds to a whole number
    const float most = 88.7228F, least = -87.3365F;
    const float inside = x > most ? most : (x < least ? least : x);
    const float shifted = inside * 1.44269504F + shifter;
    uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const auto n = static_cast<int32_t>(bits - 0x4b400000U);
    const float whole = shifted - shifter;
    // ln 2 in two parts, so that the rest is exact (Cody and Waite, 1980).
    const float r = (inside - whole * 0.693359375F) + whole * 2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1.0F;
    const int32_t half = n / 2;  // 2^128 is no float; two factors are
    const float value = p * exponential::power_of_two(half) * exponential::power_of_two(n - half);
    return x > most ? std::numeric_limits<float>::infinity() : (x < least ? 0.0F : value);
}

}  // namespace sn
