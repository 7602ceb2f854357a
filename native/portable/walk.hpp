// Loops over values that lie in any order.
#pragma once

#include "../engine/parallel.hpp"
#include "oneapi/dnnl/dnnl.hpp"

namespace dnnl {

// Calls body(place in a, place in b, number of the line) for each line along `axis`, in threads.
template <class F>
void each_line(const memory::desc& a, const memory::desc& b, size_t axis, F&& body) {
    const int64_t length = a.sizes()[axis];
    if (a.count() == 0) return;
    sn::parallel(
        a.count() / length,
        [&, axes = a.axes()](int64_t begin, int64_t end) {
            for (int64_t line = begin; line < end; ++line) {
                int64_t rest = line, from = 0, to = 0;
                for (size_t i = axes; i-- > 0;) {
                    if (i == axis) continue;
                    const int64_t at = rest % a.sizes()[i];
                    rest /= a.sizes()[i];
                    from += at * a.strides()[i], to += at * b.strides()[i];
                }
                body(from, to, line);
            }
        },
        length * 4);
}

// The axis on which the values of a description lie closest.
inline size_t innermost(const memory::desc& of) {
    size_t found = of.axes() - 1;
    for (size_t i = of.axes(); i-- > 0;)
        if (of.sizes()[i] > 1 && (of.sizes()[found] == 1 || of.strides()[i] < of.strides()[found]))
            found = i;
    return found;
}

}  // namespace dnnl
