// Convolutions of 3 x 3 and 5 x 5 windows with fewer products: Winograd's minimal filtering, as
// Lavin and Gray brought it to convolutional nets (docs/decisions/0010).
#pragma once

#include <memory>
#include <vector>

#include "window.hpp"
#include "window_pass.hpp"
#include "winograd_loops.hpp"

namespace sn {

// Matrices, one a position of a tile, and where they lie.
struct WinogradStack {
    WinogradStack(int64_t rows, int64_t columns);
    int64_t size() const { return winograd::positions * step; }

    int64_t row, step;
    float* at = nullptr;
};

// Images whose channels lie innermost, and how many channels a group has.
struct WinogradPlane {
    int64_t rows = 0, columns = 0, channels = 0, group = 0;

    int64_t size() const { return rows * columns * channels; }

    // Where the pixels of a square lie whose first is (row, column) of an image; `outside` for
    // those that the image does not have.
    template <class T>
    void look(T* image, int64_t row, int64_t column, int size, T* outside, T** at) const {
        for (int64_t i = row; i < row + size; ++i)
            for (int64_t j = column; j < column + size; ++j) {
                const bool inside = i >= 0 && i < rows && j >= 0 && j < columns;
                *at++ = inside ? image + (i * columns + j) * channels : outside;
            }
    }
};

// One of the passes of a layer whose pixels are float or BFloat16; it computes in float32.
template <class T>
class Winograd final : public WindowPass {
   public:
    Winograd(const Window& window, Pass pass);

    const char* name() const override { return "Winograd: fewer products for windows of 3 or 5"; }

    void run(const dnnl::memory& source, const dnnl::memory& weights, const End& end,
             const dnnl::memory& target) const override;
    void learn(const dnnl::memory& source, const dnnl::memory& slopes, const dnnl::memory& weights,
               const dnnl::memory& bias) const override;

   private:
    using Plane = WinogradPlane;
    using Stack = WinogradStack;
    // What one group of channels reads and writes.
    struct Group {
        const T* from;
        Stack factors;
        T* to;
        End end;
    };
    struct Place {
        int64_t image, row, column;
    };
    int64_t tiles() const { return images_ * down_ * across_; }
    Place place(int64_t tile) const;
    int64_t matrix() const { return in_.group * out_.group; }
    int64_t padded() const;
    void transform_weights(const float* weights, const Stack& to) const;
    void transform_last_weights(const float* from, int64_t tap, int64_t real, float* to,
                                int64_t step) const;
    void read_tile(int64_t tile, const T* from, float* to, int64_t step) const;
    void read_slope(const Plane& slopes, int64_t tile, const T* from, float* to,
                    int64_t step) const;
    void write_tile(int64_t tile, const float* from, int64_t step, const Group& group,
                    T* spare) const;
    void run_tiles(int64_t begin, int64_t end, const Group& group, const Stack& image,
                   const Stack& result, T* spare) const;
    int64_t begin_of(int64_t part, int64_t parts) const;
    int64_t slices() const;
    void read_tiles(int64_t begin, int64_t first, int64_t last, const Group& group,
                    const Stack& image, const Stack& slope) const;
    void multiply_panels(int64_t first, int64_t last, int64_t count, bool adds, const Stack& image,
                         const Stack& slope, const Stack& sums) const;
    void learn_together(int64_t rows, const Group& group, const Stack& image,
                        const Stack& slope) const;
    void learn_slice(int64_t begin, int64_t end, const Group& group, const Stack& image,
                     const Stack& slope, const Stack& sums) const;
    void learn_apart(int64_t parts, const Group& group, const Stack& image,
                     const Stack& slope) const;
    void sum_bias(const T* slopes, float* bias) const;

    const WinogradLoops& loops_;
    const WinogradTile& tile_;
    // Backward to the data: either the window is rotated, or the forward pass is transposed, tile
    // by tile, and adds to pixels that other tiles have added to.
    bool turns_ = false, spreads_ = false;
    int64_t images_, groups_, down_, across_, top_, left_;
    Plane in_, out_;
    std::vector<T> zeros_;
};

// A pass of this layer, if it is faster for these sizes on this processor.
std::unique_ptr<WindowPass> make_winograd(const Window& window, WindowPass::Pass pass);
// Whether all passes of a layer that learns have fewer products in float32 and some have not in
// bfloat16, where direct sums take as long: of channels that fill no vectors.
bool winograd_loses_in_bf16(const Window& window);

}  // namespace sn
