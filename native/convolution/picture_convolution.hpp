// Convolutions of pictures, of up to four channels, in the test phase, in eight bits or in
// bfloat16: oneDNN's kernels do without AMX there, or copy patches, or multiply four channels for
// each one.
#pragma once

#include <optional>

#include "convolution.hpp"
#include "picture_rows.hpp"

namespace sn {

class PictureConvolution {
   public:
    // Nothing where the type, the shape or the processor does not suit.
    static std::unique_ptr<PictureConvolution> make(const Layer& layer, const Window& window,
                                                    bool fuse);

    void run(Layer& layer, size_t i);

   private:
    PictureConvolution(const Layer& layer, const Window& window, bool fuse);
    void pack(const Layer& layer);
    // Rounded weights in Caffe's order.
    template <class T>
    void pack(const std::vector<T>& numbers);

    bool fuse_;
    PictureJob job_{};
    int64_t images_ = 0;
    // Where the values go, in float32 or in eight bits.
    dnnl::memory::desc target_;
    std::optional<Int8> narrow_target_;
    float step_ = 1;
    FoldedWeights folded_;
    std::vector<float> factors_, bias_;
    std::vector<int32_t> starts_;
    std::vector<uint8_t> weights_;
};

}  // namespace sn
