// Convolutions of which each channel has a window of its own, in bfloat16: few products meet many
// values.  oneDNN's gradients in bfloat16 take longer than those in float32, and its forward pass
// takes each value to float32.
#pragma once

#include <optional>
#include <vector>

#include "../engine/bfloat16.hpp"
#include "depthwise_rows.hpp"
#include "window.hpp"
#include "window_pass.hpp"

namespace sn {

// Weights tap by tap, a row of channels each.
dnnl::memory::desc by_taps(const Window& window, dnnl::memory::data_type type);

// Channels lie innermost; sums, weights and their gradients are float32.  A pass of the test phase
// takes weights of bfloat16, and runs on depthwise_rows.
class Depthwise final : public WindowPass {
   public:
    // Whether it computes this window.
    static bool suits(const Window& window);
    Depthwise(const Window& window, Pass pass);

    const char* name() const override {
        return "depthwise: a window for each channel, in bfloat16";
    }

    bool ends(const Ending& end) const override { return job_ && LoopEnding::of(false, end); }

    void run(const dnnl::memory& source, const dnnl::memory& weights, const End& end,
             const dnnl::memory& target) const override;
    void learn(const dnnl::memory& source, const dnnl::memory& slopes, const dnnl::memory& weights,
               const dnnl::memory& bias) const override;

   private:
    // A place of the source that a place of the target meets, through a tap.
    struct Meeting {
        int64_t from, tap;
    };
    // The places of the slopes that a tap takes to the source, and the first of those there.
    struct Run {
        int64_t place = 0, from = 0, count = 0;
    };
    // Along one axis: the meetings of each place, and the run of each tap.
    struct Axis {
        int64_t source, target, taps, step;
        std::vector<std::vector<Meeting>> meetings;
        std::vector<Run> runs;
    };
    // What depthwise_rows computes for this window; nothing where it cannot.
    static std::optional<DepthwiseJob> job(const Window& window);
    static Axis axis(const Window& window, size_t number, bool turned);
    void run_job(const dnnl::memory& source, const dnnl::memory& weights, const End& end,
                 const dnnl::memory& target) const;
    void run_lines(const DepthwiseJob& windows) const;
    void learn_strip(const BFloat16* x, const BFloat16* dy, int64_t width, bool with_bias,
                     float* sums) const;

    int64_t images_, channels_;
    Axis rows_, columns_;
    std::optional<DepthwiseJob> job_;
    // Where lines are put between zeros first.
    std::optional<PlaneWindow> lines_;
    // A row of an image.
    std::vector<uint16_t> zeros_;
};

}  // namespace sn
