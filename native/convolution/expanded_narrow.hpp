// What `Expanded` is in float32, in bfloat16, for processors that multiply pairs of such numbers.
#pragma once

#include <vector>

#include "../engine/plan/folded_weights.hpp"
#include "depthwise_rows.hpp"
#include "fused_pass.hpp"

namespace sn {

class ExpandedNarrow final : public FusedPass {
   public:
    static bool suits(const Layer& layer, const Layer& product);
    ExpandedNarrow(const Layer& layer, const Window& window);

    const char* name() const override {
        return "expanded: with the windows of each channel behind it, in bfloat16";
    }
    void run(const Layer& layer) override;

   private:
    void pack_points(const Layer& layer);

    ExpandedJob job_{};
    int64_t images_ = 0;
    dnnl::memory::desc source_, target_, packed_, window_rows_;
    FoldedWeights points_, windows_;
    // Of each strip of channels and each two of the source, and one for each channel.
    std::vector<uint16_t> weights_;
    std::vector<float> bias_;
};

}  // namespace sn
