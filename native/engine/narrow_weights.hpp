// The weights of convolutions, from plain rows in float32 to the blocks of bfloat16 that oneDNN
// multiplies: its own reorders take three times as long as the memory needs.
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>

namespace sn {

// Blocks of 16 pairs of numbers for each of `lanes` lanes; pairs of inputs for lanes of outputs, or
// the other way round.
struct NarrowWeights {
    static constexpr int64_t step = 32, most_taps = 16;

    int64_t outputs, inputs, taps, lanes;
    bool pairs_inputs;
    // From one block, or tap, to the next, in numbers.
    int64_t output_step, input_step, tap_step;

    static std::optional<NarrowWeights> of(const dnnl::memory::desc& from,
                                           const dnnl::memory::desc& to);
    void run(const float* from, void* to) const;
};

#if defined(SPARKNET_AMX)
// Rows of 16 outputs, or 32 where they make pairs, number `begin` to `end`.
void narrow_rows(const NarrowWeights& weights, const float* from, uint16_t* to, int64_t begin,
                 int64_t end);
#else
inline void narrow_rows(const NarrowWeights&, const float*, uint16_t*, int64_t, int64_t) {}
#endif

}  // namespace sn
