// Copies of values from one layout to another.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

#include "narrow_weights.hpp"

namespace sn {

// A reorder, or what is faster, that is kept from one pass to the next.
class Move {
   public:
    void run(const dnnl::memory& from, const dnnl::memory& to) { run(from, 1, to, 1); }
    // The same, where values are numbers times a step: those of eight bits.
    void run(const dnnl::memory& from, float from_step, const dnnl::memory& to, float to_step);

   private:
    dnnl::memory::desc from_, to_;
    bool steps_ = false, rounds_ = false;
    int threads_ = 0;
    dnnl::reorder primitive_;
    std::optional<NarrowWeights> weights_;
};

}  // namespace sn
