// Sixteen neighbouring numbers, as one vector where the processor has such, else as several.
#pragma once

#include <cstdint>
#include <cstring>

#include "../engine/bfloat16.hpp"

namespace sn {

#define SN_INLINE [[gnu::always_inline]] inline

using Lanes = float __attribute__((vector_size(64)));
constexpr int64_t lanes = 16;

namespace detail {
using Words = uint32_t __attribute__((vector_size(64)));
using Halves = uint16_t __attribute__((vector_size(32)));
}  // namespace detail

SN_INLINE Lanes lanes_of(const float* from) {
    Lanes found;
    std::memcpy(&found, from, sizeof found);
    return found;
}

SN_INLINE Lanes lanes_of(const BFloat16* from) {
    detail::Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    return reinterpret_cast<Lanes>(__builtin_convertvector(halves, detail::Words) << 16);
}

SN_INLINE void put(Lanes values, float* to) {
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
