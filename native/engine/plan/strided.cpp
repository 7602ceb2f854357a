#include "strided.hpp"

#include <algorithm>
#include <numeric>

namespace sn {

namespace {
// Neighbouring axes with even steps become one; axes of one value go.
Walk merged(const Walk& axes) {
    Walk found;
    for (const Axis& axis : axes) {
        if (axis.size == 1) continue;
        if (!found.empty() && found.back().step == axis.step * axis.size)
            found.back() = {found.back().size * axis.size, axis.step};
        else
            found.push_back(axis);
    }
    return found;
}

// Steps through one blob as steps through another.
class Change {
   public:
    explicit Change(const Walk& axes) : axes_(merged(axes)), reach_(axes_.size(), 0) {
        weights_.assign(axes_.size(), 1);
        for (size_t i = axes_.size(); i-- > 1;) weights_[i - 1] = weights_[i] * axes_[i].size;
    }

    int64_t offset(int64_t of) {
        int64_t sum = 0;
        for (size_t i = 0; i < axes_.size(); ++i) {
            reach_[i] = of / weights_[i];
            of %= weights_[i];
            sum += reach_[i] * axes_[i].step;
        }
        return sum;
    }

    // False if steps do not stay on an axis.
    bool walk(const Walk& from, Walk& to) {
        Walk found;
        for (const Axis& axis : from) {
            Walk parts;
            if (!split(axis, parts)) return false;
            found.insert(found.end(), parts.rbegin(), parts.rend());
        }
        to = merged(found);
        return true;
    }

    // Whether all walks together stay on each axis.
    bool stays() const {
        for (size_t i = 0; i < axes_.size(); ++i)
            if (reach_[i] >= axes_[i].size) return false;
        return true;
    }

   private:
    // The innermost part first.
    bool split(Axis axis, Walk& parts) {
        if (axis.step == 0) {
            parts.push_back(axis);
            return true;
        }
        while (axis.size > 1) {
            size_t i = 0;
            while (i < axes_.size() && weights_[i] > axis.step) ++i;
            if (i == axes_.size() || axis.step % weights_[i] != 0) return false;
            const int64_t each = axis.step / weights_[i], size = axes_[i].size;
            const bool all = each * (axis.size - 1) < size;
            if (!all && (i == 0 || size % each != 0 || axis.size % (size / each) != 0))
                return false;
            const int64_t steps = all ? axis.size : size / each;
            parts.push_back({steps, each * axes_[i].step});
            reach_[i] += each * (steps - 1);
            axis = {axis.size / steps, weights_[i] * size};
        }
        return true;
    }

    Walk axes_;
    std::vector<int64_t> weights_, reach_;
};
}  // namespace

Strided permuted(const std::vector<int64_t>& sizes, const std::vector<int64_t>& order) {
    std::vector<int64_t> steps(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) steps[i - 1] = steps[i] * sizes[i];
    Strided made;
    for (int64_t axis : order) {
        const auto at = static_cast<size_t>(axis);
        made.axes.push_back({sizes[at], steps[at]});
    }
    return made;
}

std::optional<Strided> inverse(const Strided& strided) {
    const Walk axes = merged(strided.axes);
    std::vector<int64_t> weights(axes.size(), 1);
    for (size_t i = axes.size(); i-- > 1;) weights[i - 1] = weights[i] * axes[i].size;
    std::vector<size_t> order(axes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return axes[a].step < axes[b].step; });
    Strided found;
    int64_t step = 1;
    for (size_t i : order) {
        if (axes[i].step != step) return std::nullopt;
        step *= axes[i].size;
        found.axes.insert(found.axes.begin(), {axes[i].size, weights[i]});
    }
    if (strided.offset != 0 || strided.factor != 1) return std::nullopt;
    return found;
}

Matrices Matrices::plain(int64_t batches, int64_t rows, int64_t columns) {
    return {0, 1, {{batches, rows * columns}}, {{rows, columns}}, {{columns, 1}}};
}

std::optional<Matrices> Matrices::behind(const Strided& made) const {
    Change change(made.axes);
    Matrices found;
    found.offset = made.offset + change.offset(offset);
    found.factor = factor * made.factor;
    if (!change.walk(batch, found.batch) || !change.walk(rows, found.rows) ||
        !change.walk(columns, found.columns) || !change.stays() || found.rows.size() > 1 ||
        found.columns.size() > 1)
        return std::nullopt;
    return found;
}

std::vector<int64_t> Matrices::places() const {
    std::vector<int64_t> found = {offset};
    for (const Axis& axis : batch) {
        std::vector<int64_t> next;
        next.reserve(found.size() * static_cast<size_t>(axis.size));
        for (int64_t place : found)
            for (int64_t i = 0; i < axis.size; ++i) next.push_back(place + i * axis.step);
        found = std::move(next);
    }
    return found;
}

}  // namespace sn
