// Convolutions of groups of few channels, of the test phase: oneDNN's leave lanes of vectors empty.
#pragma once

#include <vector>

#include "../engine/plan/folded_weights.hpp"
#include "fused_pass.hpp"
#include "grouped_lines.hpp"

namespace sn {

class Grouped final : public FusedPass {
   public:
    static bool suits(const Layer& layer, const Window& window);
    Grouped(const Layer& layer, const Window& window);

    const char* name() const override { return "groups: of few channels, several in a vector"; }
    void run(const Layer& layer) override;

   private:
    void pack(const Layer& layer);

    GroupedPlane plane_{};
    int64_t images_;
    dnnl::memory::desc source_, target_;
    FoldedWeights folded_;
    std::vector<uint32_t> weights_;
    std::vector<float> bias_;
};

}  // namespace sn
