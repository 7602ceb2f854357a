// Sixteen neighbouring numbers, as one vector where the processor has such, else as several.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "../engine/bfloat16.hpp"

namespace sn {

#define SN_INLINE [[gnu::always_inline]] inline

using Lanes = float __attribute__((vector_size(64)));
constexpr int64_t lanes = 16;
// What AVX2 has. Of wider vectors compilers keep the parts in memory there.
using HalfLanes = float __attribute__((vector_size(32)));

namespace detail {
using Words = uint32_t __attribute__((vector_size(64)));
using Halves = uint16_t __attribute__((vector_size(32)));
}  // namespace detail

template <class Vector = Lanes>
SN_INLINE Vector lanes_of(const float* from) {
    Vector found;
    std::memcpy(&found, from, sizeof found);
    return found;
}

template <class = Lanes>
SN_INLINE Lanes lanes_of(const BFloat16* from) {
    detail::Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    return reinterpret_cast<Lanes>(__builtin_convertvector(halves, detail::Words) << 16);
}

namespace detail {
template <class T>
SN_INLINE Lanes lanes_of_bytes(const T* from) {
    using Bytes [[gnu::vector_size(lanes)]] = T;
    using Whole [[gnu::vector_size(lanes * sizeof(int32_t))]] = int32_t;
    Bytes bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    // Compilers widen vectors to twice their size, but not to four times.
    using Short [[gnu::vector_size(lanes * sizeof(int16_t))]] = int16_t;
    const auto wide = __builtin_convertvector(__builtin_convertvector(bytes, Short), Whole);
    return __builtin_convertvector(wide, Lanes);
}
}  // namespace detail

template <class = Lanes>
SN_INLINE Lanes lanes_of(const int8_t* from) {
    return detail::lanes_of_bytes(from);
}

template <class = Lanes>
SN_INLINE Lanes lanes_of(const uint8_t* from) {
    return detail::lanes_of_bytes(from);
}

// The nearest whole numbers that T has, even ones in the middle.
template <class T>
SN_INLINE void put_rounded(Lanes values, T* to) {
    using Bytes [[gnu::vector_size(lanes)]] = uint8_t;
    constexpr float least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    values = values < least ? Lanes{} + least : values;
    values = values > most ? Lanes{} + most : values;
    // Behind this sum the last bits are those of the whole number.
    constexpr float shifter = 12582912.0F;
    const auto whole = reinterpret_cast<detail::Words>(values + shifter);
    const auto bytes =
        __builtin_convertvector(__builtin_convertvector(whole, detail::Halves), Bytes);
    std::memcpy(to, &bytes, sizeof bytes);
}

template <class Vector>
SN_INLINE void put(Vector values, float* to) {
    std::memcpy(to, &values, sizeof values);
}

// Rounds as BFloat16 does.
SN_INLINE void put(Lanes values, BFloat16* to) {
    const auto whole = reinterpret_cast<detail::Words>(values);
    const detail::Words rounded = whole + 0x7fffU + ((whole >> 16) & 1U);
    const detail::Words kept = (whole & 0x7fffffffU) > 0x7f800000U ? whole | 0x400000U : rounded;
    const auto halves = __builtin_convertvector(kept >> 16, detail::Halves);
    std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
}

}  // namespace sn
