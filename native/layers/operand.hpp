// What Scale and Bias share: a small operand, learned or the second bottom, for a run of axes of
// the first (Caffe: scale_layer.cpp, bias_layer.cpp).
#pragma once

#include <vector>

#include "../engine/affine.hpp"
#include "../engine/broadcast.hpp"
#include "../engine/layer.hpp"

namespace sn {

// One operand of a layer, filled up with zeros to the lanes of a layout.
class Operand {
   public:
    const float* padded(const float* values, const Broadcast& view) {
        if (view.padded() == view.operands) return values;
        values_.assign(static_cast<size_t>(view.padded()), 0.0F);
        for (int64_t n = 0; n < view.records; ++n)
            std::copy_n(values + n * view.own(), view.own(),
                        &values_[static_cast<size_t>(n * view.own_padded())]);
        return values_.data();
    }

   private:
    std::vector<float> values_;
};

inline Broadcast meet(const Layer& layer, const Tensor& tensor) {
    return broadcast(tensor, static_cast<size_t>(layer.options.integer("axis")),
                     static_cast<size_t>(layer.options.integer("num_axes")));
}

// Whether there is one number a channel.
inline bool is_by_channel(const Layer& layer) {
    return layer.options.integer("axis") == 1 && layer.options.integer("num_axes") == 1;
}

// Channel c of a layer's parameter; `otherwise` where there is none.
inline auto of_param(const Layer& layer, size_t number, double otherwise) {
    const float* values = number < layer.params.size() ? layer.param(number) : nullptr;
    return [=](size_t c) { return values ? static_cast<double>(values[c]) : otherwise; };
}

// Writes a gradient: adds to a parameter's, replaces a bottom's.
inline void give(const std::vector<double>& sums, const Broadcast& view, float* diff, bool adds) {
    for (int64_t i = 0; i < view.operands; ++i) {
        const int64_t place = i / view.own() * view.own_padded() + i % view.own();
        const auto sum = static_cast<float>(sums[static_cast<size_t>(place)]);
        diff[i] = adds ? diff[i] + sum : sum;
    }
}

}  // namespace sn
