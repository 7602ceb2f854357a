// A pass of a convolution that the engine computes itself, where oneDNN's is slower.
#pragma once

#include "../engine/layer.hpp"
#include "loop_ending.hpp"

namespace sn {

class WindowPass {
   public:
    using Pass = Kernel::Part;

    virtual ~WindowPass() = default;

    // Which loops these are, and why they are taken.
    virtual const char* name() const = 0;

    // Backward to the data, the source is the gradient of the tops.
    const dnnl::memory::desc& source() const { return source_; }
    const dnnl::memory::desc& target() const { return target_; }
    const dnnl::memory::desc& weights() const { return weights_; }

    // Whether it computes this function at its end, too.
    virtual bool ends(const Ending&) const { return false; }

    // How the sums are finished: plus a bias, plus the target's old values, at least zero; or a
    // function that the pass `ends` with.
    struct End {
        const float* bias = nullptr;
        bool adds = false, relu = false;
        LoopEnding function{};
    };
    // Forward, or backward to the data.
    virtual void run(const dnnl::memory& source, const dnnl::memory& weights, const End& end,
                     const dnnl::memory& target) const = 0;
    // The gradients of the weights, and of the bias if there is memory for it.
    virtual void learn(const dnnl::memory& source, const dnnl::memory& slopes,
                       const dnnl::memory& weights, const dnnl::memory& bias) const = 0;

   protected:
    dnnl::memory::desc source_, target_, weights_;
};

}  // namespace sn
