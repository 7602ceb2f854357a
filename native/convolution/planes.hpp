// The planes of a pass, for threads.
#pragma once

#include <vector>

#include "../engine/parallel.hpp"
#include "plane_lines.hpp"

namespace sn {

// Of the memory of a thread, in numbers: most of the second cache.
constexpr int64_t most_scratch = 128 * 1024;

// The planes of images, and what a row of all of an image takes in bytes, if they lie together.
struct Planes {
    int64_t images, each, row = 0;
};

// lines(plane, first row, end, scratch) for all rows of all planes, with so many products a value.
// Where there are fewer planes than threads need, these take parts of planes; and where planes lie
// together, parts that the second cache holds for one plane after the other.
template <class F>
void over_planes(const PlaneWindow& window, const Planes& of, int64_t products, F&& lines) {
    constexpr int64_t few = 8, apart = 64, cached = 1 << 18;
    const int64_t planes = of.images * of.each;
    const int64_t wanted = std::max((4 * threads() + planes - 1) / planes,
                                    of.each > 1 ? of.row * window.height / cached : 0);
    const int64_t strips = std::clamp<int64_t>(window.rows / few, 1, std::max<int64_t>(1, wanted));
    const int64_t rows = window.rows, room = window.scratch() + PlaneWindow::lanes;
    parallel(planes * strips, rows / strips * window.columns * PlaneWindow::lanes * products / 4,
             [=](int64_t begin, int64_t stop) {
                 std::vector<float> memory(static_cast<size_t>(room), 0.0F);
                 float* scratch = memory.data();
                 while (reinterpret_cast<uintptr_t>(scratch) % apart != 0) ++scratch;
                 for (int64_t item = begin; item < stop; ++item) {
                     const int64_t strip = item / of.each % strips;
                     const int64_t plane = item / of.each / strips * of.each + item % of.each;
                     lines(plane, strip * rows / strips, (strip + 1) * rows / strips, scratch);
                 }
             });
}

}  // namespace sn
