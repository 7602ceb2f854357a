// A window over the lines of a plane of sixteen channels: each line is put between zeros once,
// where all windows that look at it find it in the first cache.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sn {

struct PlaneWindow {
    // The window is a square of `side` taps.
    int64_t height, width, rows, columns, side;
    int64_t stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;

    static constexpr int64_t lanes = 16;
    // Pixels that are computed together: most images of published nets are divided by them.
    int64_t together() const { return columns >= 14 ? 14 : 7; }
    int64_t reach() const { return (side - 1) * dilation_y + 1; }
    // Pixels of a line with what surrounds it, of which there may be too many at the end.
    int64_t line() const {
        const int64_t all = (columns + together() - 1) / together() * together();
        return (all - 1) * stride_x + (side - 1) * dilation_x + 1;
    }
    // Numbers of a thread's memory: as many lines as a window reaches, and one of zeros.
    int64_t scratch() const { return (reach() + 1) * line() * lanes; }
};

// For the rows `begin` to `end` of the target: put(line, columns, to) for each line that they look
// at, once; then sum(row, lines) with as many lines as the window has taps. The scratch begins with
// zeros, and belongs to windows of this size.
template <int most, class Put, class Sum>
[[gnu::always_inline]] inline void over_lines(const PlaneWindow& window, int64_t begin, int64_t end,
                                              float* scratch, Put&& put, Sum&& sum) {
    const int64_t reach = window.reach(), size = window.line() * PlaneWindow::lanes;
    const int64_t columns =
        std::max<int64_t>(0, std::min(window.width, window.line() - window.pad_x));
    const float* zeros = scratch + reach * size;
    // The first line that has not been put there.
    int64_t next = begin * window.stride_y - window.pad_y;
    for (int64_t y = begin; y < end; ++y) {
        const int64_t first = y * window.stride_y - window.pad_y;
        for (next = std::max(next, first); next < first + reach; ++next)
            if (next >= 0 && next < window.height)
                put(next, columns,
                    scratch + next % reach * size + window.pad_x * PlaneWindow::lanes);
        const float* lines[most];
        for (int64_t i = 0; i < window.side; ++i) {
            const int64_t line = first + i * window.dilation_y;
            lines[i] = line >= 0 && line < window.height ? scratch + line % reach * size : zeros;
        }
        sum(y, lines);
    }
}

}  // namespace sn
