// Bottoms that are spread over each other by numpy's rules.
#pragma once

#include <array>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

template <size_t sides>
class Spread {
   public:
    using Steps = std::array<int64_t, sides>;

    // Axes along which all bottoms go on in even steps become one.
    void reshape(const Layer& layer) {
        const Shape& top = layer.tops[0]->shape();
        axes_.clear();
        Steps whole{};
        whole.fill(1);
        for (size_t axis = top.size(); axis-- > 0;) {
            Steps steps{};
            for (size_t i = 0; i < sides; ++i) {
                const int64_t size = size_of(layer.shape(i), top, axis);
                steps[i] = size == 1 ? 0 : whole[i];
                whole[i] *= size;
            }
            if (top[axis] == 1) continue;
            if (!axes_.empty() && goes_on(axes_.back(), steps))
                axes_.back().size *= top[axis];
            else
                axes_.push_back({top[axis], steps});
        }
        if (axes_.empty()) axes_.push_back({1, {}});
    }

    // step(first value of the top, how many, first value and step of each bottom), for pieces of
    // the innermost axis.
    template <class F>
    void runs(int64_t begin, int64_t end, F step) const {
        for (int64_t at = begin; at < end;) {
            const int64_t inner = axes_[0].size, column = at % inner;
            Steps from{};
            for (size_t i = 0; i < sides; ++i) from[i] = column * axes_[0].steps[i];
            int64_t rest = at / inner;
            for (size_t axis = 1; axis < axes_.size(); ++axis) {
                const int64_t place = rest % axes_[axis].size;
                rest /= axes_[axis].size;
                for (size_t i = 0; i < sides; ++i) from[i] += place * axes_[axis].steps[i];
            }
            const int64_t many = std::min(inner - column, end - at);
            step(at, many, from, axes_[0].steps);
            at += many;
        }
    }

    template <class F>
    void each_run(const Layer& layer, F step) const {
        parallel(layer.tops[0]->count(),
                 [this, step](int64_t begin, int64_t end) { runs(begin, end, step); });
    }

    // The gradient of a bottom: part(place in the top, places in the bottoms), summed where the
    // bottom is spread.
    template <class F>
    void give(Layer& layer, size_t side, F part) {
        float* d = layer.bottom_diff(side);
        const int64_t own = layer.bottoms[side]->count(), total = layer.tops[0]->count();
        if (own == total) {
            each_run(layer, [=](int64_t at, int64_t many, Steps from, const Steps& by) {
                for (int64_t i = 0; i < many; ++i, move(from, by)) d[at + i] = part(at + i, from);
            });
            return;
        }
        sums_.assign(static_cast<size_t>(own), 0);
        double* sums = sums_.data();
        runs(0, total, [=](int64_t at, int64_t many, Steps from, const Steps& by) {
            for (int64_t i = 0; i < many; ++i, move(from, by))
                sums[from[side]] += static_cast<double>(part(at + i, from));
        });
        for (int64_t i = 0; i < own; ++i) d[i] = static_cast<float>(sums[i]);
    }

   private:
    struct Axis {
        int64_t size;
        Steps steps;
    };

    static void move(Steps& from, const Steps& by) {
        for (size_t i = 0; i < sides; ++i) from[i] += by[i];
    }

    static int64_t size_of(const Shape& shape, const Shape& top, size_t axis) {
        const size_t missing = top.size() - shape.size();
        return axis < missing ? 1 : shape[axis - missing];
    }

    static bool goes_on(const Axis& inner, const Steps& steps) {
        for (size_t i = 0; i < sides; ++i)
            if (steps[i] != inner.steps[i] * inner.size) return false;
        return true;
    }

    std::vector<Axis> axes_;  // the innermost first
    std::vector<double> sums_;
};

}  // namespace sn
