// Convolutions of pictures, of up to four channels, in eight bits on processors with AMX: oneDNN's
// kernels do without AMX there.
#pragma once

#include <optional>

#include "convolution.hpp"
#include "picture_rows.hpp"

namespace sn {

class PictureConvolution {
   public:
    // For a layer that suits Int8Convolution; nothing where the shape or the processor does not.
    static std::unique_ptr<PictureConvolution> make(const Layer& layer, const Window& window,
                                                    bool fuse);

    void run(Layer& layer, size_t i);

   private:
    PictureConvolution(const Layer& layer, const Window& window, bool fuse);
    void pack(const Layer& layer);

    bool fuse_;
    PictureJob job_{};
    int64_t images_ = 0;
    // Where the values go, in float32 or in eight bits.
    dnnl::memory::desc target_;
    std::optional<Int8> narrow_target_;
    float step_ = 1;
    FoldedWeights folded_;
    std::vector<float> factors_, bias_;
    std::vector<int8_t> weights_;
};

}  // namespace sn
