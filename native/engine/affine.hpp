// Layers that multiply and shift channels, one after the other, as one.
#pragma once

#include <cstddef>
#include <vector>

namespace sn {

// y = factor x + shift, for each channel.
struct Affine {
    std::vector<double> factors, shifts;

    Affine(std::size_t channels, const float* bias)
        : factors(channels, 1.0), shifts(channels, 0.0) {
        if (bias) shifts.assign(bias, bias + channels);
    }
    // And then y = factor(channel) x + shift(channel).
    template <class Factor, class Shift>
    void then(Factor&& factor, Shift&& shift) {
        for (std::size_t c = 0; c < factors.size(); ++c) {
            factors[c] *= factor(c);
            shifts[c] = shifts[c] * factor(c) + shift(c);
        }
    }
};

}  // namespace sn
