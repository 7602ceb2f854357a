// The gradients of a convolution's weights in bfloat16, by tiles of AMX: oneDNN's take two to four
// times as long as its forward pass, and their result has to be brought into plain rows.
#pragma once

#include <memory>
#include <vector>

#include "convolution.hpp"
#include "weight_products.hpp"

namespace sn {

class LearnedWeights {
   public:
    // Nothing where oneDNN's are needed, or faster.
    static std::unique_ptr<LearnedWeights> make(const Window& window);

    const dnnl::memory::desc& source() const { return source_; }
    const dnnl::memory::desc& slopes() const { return slopes_; }
    // Puts the gradients into plain rows, or adds them.
    void run(const dnnl::memory& source, const dnnl::memory& slopes, float* rows, bool adds) const;

   private:
    explicit LearnedWeights(const Window& window);
    void walk_points(const Window& window);
    void walk_windows(const Window& window);
    int64_t steps() const;

    dnnl::memory::desc source_, slopes_;
    WeightJob job_;
    std::vector<int32_t> source_at_, slopes_at_;
    std::vector<int64_t> shifts_;
};

}  // namespace sn
