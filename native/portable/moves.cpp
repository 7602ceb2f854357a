// Values from one order into another.
#include <algorithm>

#include "functions.hpp"
#include "walk.hpp"

namespace dnnl {

namespace {
// to = from, or to += from; `line` is the axis along which the loops go.
void move(const memory::desc& a, const float* from, const memory::desc& b, float* to, bool adds) {
    if (a.is_dense() && b.is_dense()) {
        sn::parallel(a.count(), [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) to[i] = adds ? to[i] + from[i] : from[i];
        });
        return;
    }
    const size_t axis = innermost(b);
    const int64_t n = b.sizes()[axis], in = a.strides()[axis], out = b.strides()[axis];
    each_line(a, b, axis, [=](int64_t x, int64_t y, int64_t) {
        for (int64_t i = 0; i < n; ++i)
            to[y + i * out] = adds ? to[y + i * out] + from[x + i * in] : from[x + i * in];
    });
}
}  // namespace

reorder::primitive_desc::primitive_desc(const engine&, const memory::desc& from, const engine&,
                                        const memory::desc& to, const primitive_attr& with) {
    src = from, dst = to;
    if (from.is_strided() && to.is_strided() && from.get_dims() == to.get_dims())
        run = [=, sums = adds(with)](const Operands& all) {
            const memory in = operand(all, DNNL_ARG_FROM), out = operand(all, DNNL_ARG_TO);
            move(from, in.floats(), to, out.floats(), sums);
        };
    check(false);
}

concat::primitive_desc::primitive_desc(const engine&, const memory::desc& to, int axis,
                                       const std::vector<memory::desc>& from,
                                       const primitive_attr&) {
    dst = to;
    std::vector<memory::desc> parts;
    memory::dims at(to.axes(), 0);
    for (const auto& one : from) {
        if (!one.is_strided()) check(false);
        parts.push_back(to.submemory_desc(one.get_dims(), at));
        at[static_cast<size_t>(axis)] += one.sizes()[static_cast<size_t>(axis)];
    }
    run = [=](const Operands& all) {
        const memory target = operand(all, DNNL_ARG_DST);
        for (size_t i = 0; i < from.size(); ++i) {
            const memory one = operand(all, DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i));
            move(from[i], one.floats(), parts[i], target.floats() + parts[i].offset(), false);
        }
    };
}

// The axis as a matrix with rows of `group` values becomes that matrix's transpose.
shuffle_forward::primitive_desc::primitive_desc(const engine&, prop_kind, const memory::desc& from,
                                                const memory::desc& to, int along, int group,
                                                const primitive_attr&) {
    src = from, dst = to;
    if (!from.is_strided() || !to.is_strided()) check(false);
    const auto axis = static_cast<size_t>(along);
    const int64_t n = from.sizes()[axis], in = from.strides()[axis], out = to.strides()[axis];
    run = [=](const Operands& all) {
        const memory source = operand(all, DNNL_ARG_SRC), target = operand(all, DNNL_ARG_DST);
        each_line(from, to, axis, [&](int64_t x, int64_t y, int64_t) {
            const int64_t rows = n / group;
            for (int64_t i = 0; i < n; ++i)
                target.floats()[y + (i % group * rows + i / group) * out] =
                    source.floats()[x + i * in];
        });
    };
}

}  // namespace dnnl
