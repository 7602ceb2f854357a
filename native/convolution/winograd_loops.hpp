// The innermost loops of Winograd's convolution, compiled for the processors on which it is faster.
#pragma once

#include <cstdint>

#include "../engine/bfloat16.hpp"

namespace sn {

namespace winograd {
// A tile looks at 6 x 6 inputs and takes 36 products a pair of channels.
constexpr int reach = 6, positions = reach * reach;
constexpr int most_taps = 25, most_outputs = 16, most_columns = 32;
}  // namespace winograd

// C (rows x columns) = A B, or C += A B.  A's value (r, k) is a[r * a_row + k * a_step], where one
// of the two is 1.  B's columns come in panels as wide as a block: row k of panel j begins at
// b + j * b_panel + k * b_step.  C's rows have room for whole panels.
struct WinogradProduct {
    const float* a;
    int64_t a_row, a_step;
    const float* b;
    int64_t b_step, b_panel;
    float* c;
    int64_t c_row;
    int64_t rows, columns, depth;
    bool adds;
};

// One function for pixels of each type, called by the type of its arguments.
struct WinogradGather {
    // From pixels to 36 positions, `step` apart.
    template <class T>
    using Of = void (*)(const T* const* from, float* to, int64_t step, int64_t channels);
    Of<float> wide;
    Of<BFloat16> narrow;

    void operator()(const float* const* from, float* to, int64_t step, int64_t channels) const {
        wide(from, to, step, channels);
    }
    void operator()(const BFloat16* const* from, float* to, int64_t step, int64_t channels) const {
        narrow(from, to, step, channels);
    }
};
struct WinogradScatter {
    // From 36 positions to pixels: plus a bias (if any), plus the old values if it `adds`, and at
    // least `least`.
    template <class T>
    using Of = void (*)(const float* from, int64_t step, T* const* to, const float* bias, bool adds,
                        float least, int64_t channels);
    Of<float> wide;
    Of<BFloat16> narrow;

    void operator()(const float* from, int64_t step, float* const* to, const float* bias, bool adds,
                    float least, int64_t channels) const {
        wide(from, step, to, bias, adds, least, channels);
    }
    void operator()(const float* from, int64_t step, BFloat16* const* to, const float* bias,
                    bool adds, float least, int64_t channels) const {
        narrow(from, step, to, bias, adds, least, channels);
    }
};

// What depends on the size of the window.  Values of many channels lie side by side: 16 or more.
struct WinogradTile {
    // The sides of the window and of a tile of outputs.
    int window, side;
    // From the gradients of a tile's outputs to 36 positions: A dY A^T.
    WinogradGather slope;
    // From the taps to 36 positions: G g G^T.
    void (*weight)(const float* from, int64_t tap, float* to, int64_t step, int64_t channels);
    // From 36 positions to the outputs: A^T M A.
    WinogradScatter result;
    // From 36 positions to the gradients of the taps: G^T M G.
    void (*gradient)(const float* from, int64_t step, float* to, int64_t tap, int64_t channels);

    int taps() const { return window * window; }
    int outputs() const { return side * side; }
};

struct WinogradLoops {
    // The size of a block of the product: columns divide 32 (most_columns).
    int64_t block_rows, block_columns;
    // For windows of 3 x 3 and of 5 x 5.
    WinogradTile three, five;
    // From 36 inputs of a tile to 36 positions: B^T d B.
    WinogradGather image;
    // What follows from it for the gradients, from 36 positions to 36 inputs: B M B^T.
    WinogradScatter spread;
    // Products where A's rows, or A's columns, are contiguous.
    void (*multiply)(const WinogradProduct& product);
    void (*multiply_across)(const WinogradProduct& product);
};

extern const WinogradLoops winograd_haswell, winograd_skylake;
// The loops for this processor; null where none would be faster.
const WinogradLoops* winograd_loops();

}  // namespace sn
