// Of two values the first where a condition holds, else the second.
#include <array>

#include "../engine/layer.hpp"
#include "no_gradient.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class Where final : public Kernel {
   public:
    bool only_reads() const override { return true; }
    bool looks_back(const Layer& layer, const Blob& blob) const override {
        return &blob == layer.bottoms[0];
    }

    // Axes along which all bottoms go on in even steps become one.
    void reshape(Layer& layer) override {
        const Shape& top = layer.tops[0]->shape();
        axes_.clear();
        Steps whole = {1, 1, 1};
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
        if (axes_.empty()) axes_.push_back({1, {0, 0, 0}});
    }

    void forward(Layer& layer) override {
        const float *c = layer.bottom(0), *a = layer.bottom(1), *b = layer.bottom(2);
        float* y = layer.top();
        each_run(layer, [=](int64_t at, int64_t many, const Steps& from, const Steps& steps) {
            for (int64_t i = 0; i < many; ++i)
                y[at + i] = c[from[0] + i * steps[0]] != 0 ? a[from[1] + i * steps[1]]
                                                           : b[from[2] + i * steps[2]];
        });
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 0, "condition");
        const float *c = layer.bottom(0), *dy = layer.top_diff();
        const int64_t total = layer.tops[0]->count();
        for (size_t side = 1; side < sides; ++side) {
            if (!layer.propagate[side]) continue;
            float* d = layer.bottom_diff(side);
            const int64_t own = layer.bottoms[side]->count();
            const bool first = side == 1;
            if (own == total) {
                each_run(layer, [=](int64_t at, int64_t many, const Steps& from, const Steps& by) {
                    for (int64_t i = 0; i < many; ++i)
                        d[at + i] = (c[from[0] + i * by[0]] != 0) == first ? dy[at + i] : 0;
                });
                continue;
            }
            sums_.assign(static_cast<size_t>(own), 0);
            double* sums = sums_.data();
            runs(0, total, [=](int64_t at, int64_t many, const Steps& from, const Steps& by) {
                for (int64_t i = 0; i < many; ++i)
                    if ((c[from[0] + i * by[0]] != 0) == first)
                        sums[from[side] + i * by[side]] += static_cast<double>(dy[at + i]);
            });
            for (int64_t i = 0; i < own; ++i) d[i] = static_cast<float>(sums[i]);
        }
    }

   private:
    static constexpr size_t sides = 3;
    using Steps = std::array<int64_t, sides>;
    struct Axis {
        int64_t size;
        Steps steps;
    };

    static int64_t size_of(const Shape& shape, const Shape& top, size_t axis) {
        const size_t missing = top.size() - shape.size();
        return axis < missing ? 1 : shape[axis - missing];
    }

    static bool goes_on(const Axis& inner, const Steps& steps) {
        for (size_t i = 0; i < sides; ++i)
            if (steps[i] != inner.steps[i] * inner.size) return false;
        return true;
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

    std::vector<Axis> axes_;  // the innermost first
    std::vector<double> sums_;
};
}  // namespace

std::unique_ptr<Kernel> make_where() {
    return make<Where>();
}

}  // namespace sn
