// The innermost loops of Winograd's convolution, compiled for the processors that gain from it.
#pragma once

#include <cstdint>

namespace sn {

namespace winograd {
// Tiles of 4 x 4 outputs; each looks at 6 x 6 inputs and takes 36 products a pair of channels.
constexpr int side = 4, reach = 6, taps = 9;
constexpr int outputs = side * side, positions = reach * reach;
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

// Values of many channels lie side by side, as many as a multiple of 16.
struct WinogradLoops {
    // What a block of the product is: columns divide 32.
    int64_t block_rows, block_columns;
    // From 36 inputs of a tile to 36 positions, `step` apart: B^T d B.
    void (*image)(const float* const* from, float* to, int64_t step, int64_t channels);
    // From 16 gradients of a tile's outputs to 36 positions: A dY A^T.
    void (*slope)(const float* const* from, float* to, int64_t step, int64_t channels);
    // From 9 taps to 36 positions: G g G^T.
    void (*weight)(const float* from, int64_t tap, float* to, int64_t step, int64_t channels);
    // From 36 positions to 16 outputs: A^T M A, plus a bias (if any), plus what is there already
    // if it `adds`, and no less than `least`.
    void (*result)(const float* from, int64_t step, float* const* to, const float* bias, bool adds,
                   float least, int64_t channels);
    // From 36 positions to the gradients of 9 taps: G^T M G.
    void (*gradient)(const float* from, int64_t step, float* to, int64_t tap, int64_t channels);
    // Products where A's rows, or A's columns, are contiguous.
    void (*multiply)(const WinogradProduct& product);
    void (*multiply_across)(const WinogradProduct& product);
};

extern const WinogradLoops winograd_haswell, winograd_skylake;
// Those for this processor; null where none would gain.
const WinogradLoops* winograd_loops();

}  // namespace sn
