// A convolution of single pixels in bfloat16, for processors that multiply pairs of such numbers:
// oneDNN's kernel loses time between its blocks where a pixel has few channels or an image is one
// pixel.
#pragma once

#include "point_rows.hpp"
#include "window.hpp"
#include "window_pass.hpp"

namespace sn {

class Points final : public WindowPass {
   public:
    static bool suits(const Layer& layer, const Window& window);
    explicit Points(const Window& window);

    const char* name() const override {
        return "points: rows of channels with the weights, in bfloat16";
    }
    bool ends(const Ending& ending) const override {
        return LoopEnding::of(false, ending).has_value();
    }
    void run(const dnnl::memory& source, const dnnl::memory& weights, const End& end,
             const dnnl::memory& target) const override;
    // It is a pass of the test phase.
    void learn(const dnnl::memory&, const dnnl::memory&, const dnnl::memory&,
               const dnnl::memory&) const override {}

   private:
    PointsJob job_{};
    int64_t pixels_;
};

}  // namespace sn
