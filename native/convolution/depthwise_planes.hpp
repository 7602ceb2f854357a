// Convolutions of which each channel has a window of its own, in float32, of the test phase.
// oneDNN's take most of their time for the function at their end.
#pragma once

#include "depthwise_lines.hpp"
#include "window.hpp"
#include "window_pass.hpp"

namespace sn {

// Channels lie in blocks of sixteen.
class DepthwisePlanes final : public WindowPass {
   public:
    // Whether it computes this window, with what is fused into the layer or alone.
    static bool suits(const Layer& layer, const Window& window, bool fused);
    DepthwisePlanes(const Layer& layer, const Window& window, bool fused);

    const char* name() const override {
        return "planes: a window for each channel, and the function behind it";
    }
    bool ends(const Ending& end) const override { return LoopEnding::of(false, end).has_value(); }

    void run(const dnnl::memory& source, const dnnl::memory& weights, const End& end,
             const dnnl::memory& target) const override;
    // The source is what points make of another.
    void run(const dnnl::memory& source, const DepthwisePoints& points, const dnnl::memory& weights,
             const End& end, const dnnl::memory& target) const;
    void learn(const dnnl::memory&, const dnnl::memory&, const dnnl::memory&,
               const dnnl::memory&) const override {}

   private:
    int64_t images_;
    DepthwisePlane plane_{};
};

}  // namespace sn
