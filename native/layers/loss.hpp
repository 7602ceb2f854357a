// What losses share: checked labels, and the divisor of a sum (Caffe: loss_layer.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"
#include "no_gradient.hpp"

namespace sn {

// Labels as class numbers.  Fractions are cut off, as Caffe does.
class Labels {
   public:
    static constexpr int32_t ignored = -1;

    void reshape(const Layer& layer, int64_t classes) {
        classes_ = classes;
        ignore_.reset();
        if (layer.options.has("ignore_label"))
            ignore_ = static_cast<double>(layer.options.integer("ignore_label"));
        numbers_.assign(static_cast<size_t>(layer.bottoms[1]->count()), 0);
    }

    // The labels of bottom 1; refuses one that is no class.
    void read(const Layer& layer) {
        const float* label = layer.bottom(1);
        valid_ = 0;
        for (size_t i = 0; i < numbers_.size(); ++i) {
            numbers_[i] = number(layer, label[i]);
            valid_ += numbers_[i] != ignored;
        }
    }

    int32_t operator[](int64_t i) const { return numbers_[static_cast<size_t>(i)]; }
    int64_t valid() const { return valid_; }

   private:
    int32_t number(const Layer& layer, float label) const {
        const double whole = std::trunc(static_cast<double>(label));
        if (ignore_ && whole == *ignore_) return ignored;
        if (!(whole >= 0 && whole < static_cast<double>(classes_))) {
            std::ostringstream message;
            message << "label " << label << " is out of range: there are " << classes_
                    << " classes";
            layer.refuse(message.str());
        }
        return static_cast<int32_t>(whole);
    }

    int64_t classes_ = 0, valid_ = 0;
    std::optional<double> ignore_;
    std::vector<int32_t> numbers_;
};

// The divisor of a loss; at least 1.
inline double normalizer(const Layer& layer, int64_t outer, int64_t inner, int64_t valid) {
    const std::string& mode = layer.options.text("normalization");
    double by = 1;
    if (mode == "full") by = static_cast<double>(outer * inner);
    if (mode == "valid") by = static_cast<double>(valid);
    if (mode == "batch_size") by = static_cast<double>(outer);
    if (mode == "pre_fixed") by = layer.options.real("pre_fixed_normalizer");
    return std::max(1.0, by);
}

// The divisor of a loss without normalization: the number of items, which may be 0.
inline double items(const Layer& layer) {
    return static_cast<double>(std::max<int64_t>(1, layer.options.integer("num")));
}

// The sum of a loss's items, each multiplied by the weight of its record: items lie in the order of
// bottom 0, whatever axes behind the records' they leave out.
template <class F>
double loss_sum(const Layer& layer, int64_t items, int64_t cost, F&& term) {
    const Blob* given = layer.bottoms[0]->weights;
    if (!given) return parallel_sum(items, cost, term);
    const int64_t records = given->count();
    const auto axis = static_cast<int64_t>(given->shape().size()) - 1;
    const int64_t rows = count(layer.shape(), 0, static_cast<size_t>(axis)) * records;
    const int64_t each = rows > 0 ? std::max<int64_t>(1, items / rows) : 1;
    const float* weights = given->data.read();
    return parallel_sum(items, cost, [&](int64_t i) {
        return static_cast<double>(weights[i / each % records]) * term(i);
    });
}

// The gradient of a bottom: slope(scale, i), where scale is the loss weight of an item.
template <class F>
void loss_gradient(const Layer& layer, size_t bottom, F&& slope, int64_t cost = 1) {
    if (!layer.propagate[bottom]) return;
    const float scale = layer.top_diff()[0] / static_cast<float>(items(layer));
    float* dx = layer.bottom_diff(bottom);
    parallel_each(layer.bottoms[bottom]->count(), cost,
                  [=](int64_t i) { dx[i] = slope(scale, i); });
}

// Gradients of a loss of a - b: for bottom 1 the opposite of bottom 0's.
template <class F>
void difference_gradients(const Layer& layer, F&& slope) {
    loss_gradient(layer, 0, slope);
    loss_gradient(layer, 1, [=](float scale, int64_t i) { return slope(-scale, i); });
}

inline void set_loss(const Layer& layer, double loss) {
    layer.top()[0] = static_cast<float>(loss);
}

// The loss weight that arrives at the top.
inline float weight(const Layer& layer) {
    return layer.top_diff()[0];
}

}  // namespace sn
