#include "narrow_weights.hpp"

#include "instructions.hpp"
#include "parallel.hpp"

namespace sn {

using dnnl::memory;

std::optional<NarrowWeights> NarrowWeights::of(const memory::desc& from, const memory::desc& to) {
    if (to.get_data_type() != memory::data_type::bf16 ||
        from.get_data_type() != memory::data_type::f32 || !has_avx512_bf16())
        return std::nullopt;
    const auto dims = to.get_dims(), blocks = to.get_inner_blks(), order = to.get_inner_idxs();
    if (dims.size() != 4 ||
        from != memory::desc(dims, memory::data_type::f32, memory::format_tag::abcd))
        return std::nullopt;
    if (blocks.size() != 3 || blocks[0] != step / 2 || blocks[2] != 2 || order[0] != order[2] ||
        order[0] + order[1] != 1)
        return std::nullopt;
    const bool pairs_inputs = order[0] == 1;
    const auto steps = to.get_strides();
    const NarrowWeights found{dims[0],      dims[1],  dims[2] * dims[3], blocks[1],
                              pairs_inputs, steps[0], steps[1],          steps[3]};
    const int64_t lanes = pairs_inputs ? found.outputs : found.inputs;
    const int64_t pairs = pairs_inputs ? found.inputs : found.outputs;
    const bool fits = found.lanes % step == 0 && lanes % found.lanes == 0 && pairs % step == 0;
    if (!fits || found.taps > most_taps || steps[2] != dims[3] * steps[3]) return std::nullopt;
    return found;
}

void NarrowWeights::run(const float* from, void* to) const {
    const int64_t rows = pairs_inputs ? step / 2 : step;
    const NarrowWeights weights = *this;
    auto* numbers = static_cast<uint16_t*>(to);
    parallel(outputs / rows, rows * inputs * taps,
             [=](int64_t begin, int64_t end) { narrow_rows(weights, from, numbers, begin, end); });
}

}  // namespace sn
