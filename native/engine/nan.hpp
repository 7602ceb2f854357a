// What is no number stays none: for kernels of oneDNN that make a number of it.
#pragma once

#include <atomic>
#include <limits>

#include "activation.hpp"
#include "elementwise.hpp"
#include "layer.hpp"

namespace sn {

// max(x, 0) as x times a gate between 0 and 1: oneDNN's own makes 0 of NaN.
constexpr Ending relu_ending = {dnnl::algorithm::eltwise_hardswish,
                                std::numeric_limits<float>::max(), 0};

// oneDNN's clip loses NaN, and has no other form.
inline bool loses_nan(const std::optional<Ending>& ending) {
    return ending && ending->algorithm == dnnl::algorithm::eltwise_clip_v2;
}

// The function behind a pass that does not compute it.
inline void finish(const Ending& ending, Activation& activation, Tensor& values) {
    const float least = ending.alpha, most = ending.beta;
    if (!loses_nan(ending))
        return activation.run(ending.algorithm, values, values, ending.alpha, ending.beta);
    map(values, values, least <= 0 && most >= 0, [=](float x) {
        const float low = x < least ? least : x;
        return low > most ? most : low;
    });
}

template <class T>
SN_KERNEL bool any_nan(const T* x, int64_t begin, int64_t end) {
    int found = 0;
#pragma omp simd reduction(| : found)
    for (int64_t i = begin; i < end; ++i) found |= x[i] != x[i];
    return found != 0;
}

inline bool has_nan(const Tensor& a) {
    if (a.int8()) return false;
    const auto desc = a.newest();
    const auto in = a.read(desc);
    std::atomic<bool> found = false;
    typed(desc, [&](auto type) {
        using T = decltype(type);
        const T* x = values_of<T>(in);
        auto* to = &found;
        parallel(values(desc), [=](int64_t begin, int64_t end) {
            if (any_nan(x, begin, end)) *to = true;
        });
    });
    return found;
}

}  // namespace sn
