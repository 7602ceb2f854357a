// Weights in blocks of bfloat16 against a loop over the numbers.  Only processors with AMX have
// such convolutions, but more have the instructions.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../engine/instructions.hpp"
#include "../engine/narrow_weights.hpp"

namespace {
using sn::NarrowWeights;

void expect(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "not true: %s\n", what);
    std::exit(1);
}

// Few enough bits for bfloat16.
float number(int64_t i) {
    return static_cast<float>(i * 37 % 255 - 127) / 16.0F;
}

uint16_t bf16(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<uint16_t>(bits >> 16U);
}

void compare(int64_t outputs, int64_t inputs, int64_t taps, int64_t lanes, bool pairs_inputs) {
    const int64_t block = NarrowWeights::step * lanes, size = outputs * inputs * taps;
    const int64_t row = (pairs_inputs ? inputs / NarrowWeights::step : inputs / lanes) * taps;
    const NarrowWeights weights{outputs,      inputs,      taps,         lanes,
                                pairs_inputs, row * block, taps * block, block};
    std::vector<float> from(static_cast<size_t>(size));
    std::vector<uint16_t> got(from.size(), 0xffff), expected(from.size());
    for (int64_t o = 0, k = 0; o < outputs; ++o)
        for (int64_t i = 0; i < inputs; ++i)
            for (int64_t tap = 0; tap < taps; ++tap, ++k) {
                from[static_cast<size_t>(k)] = number(k);
                const int64_t lane = pairs_inputs ? o : i, pair = pairs_inputs ? i : o;
                const int64_t blocks_before =
                    pairs_inputs
                        ? (o / lanes * (inputs / NarrowWeights::step) + i / NarrowWeights::step)
                        : (o / NarrowWeights::step * (inputs / lanes) + i / lanes);
                const int64_t in_pairs = pair % NarrowWeights::step;
                const int64_t at = (blocks_before * taps + tap) * block + in_pairs / 2 * lanes * 2 +
                                   lane % lanes * 2 + in_pairs % 2;
                expected[static_cast<size_t>(at)] = bf16(number(k));
            }
    weights.run(from.data(), got.data());
    expect(got == expected, "every number lies where the loop puts it");
}

void plain_convolutions_are_left_alone() {
    using dnnl::memory;
    const memory::dims dims{64, 64, 3, 3};
    const memory::desc plain(dims, memory::data_type::f32, memory::format_tag::abcd);
    using tag = memory::format_tag;
    for (const auto& [type, order] : {std::pair(memory::data_type::bf16, tag::abcd),
                                      std::pair(memory::data_type::f32, tag::ABcd16b16a),
                                      std::pair(memory::data_type::bf16, tag::ABcd16b16a)})
        expect(!NarrowWeights::of(plain, {dims, type, order}), "other blocks are oneDNN's to fill");
}
}  // namespace

int main() {
    plain_convolutions_are_left_alone();
    if (!sn::has_avx512_bf16()) return 0;
    for (const bool pairs_inputs : {true, false})
        for (const int64_t lanes : {32, 64})
            for (const int64_t taps : {1, 2, 9, 16}) {
                compare(64, 64, taps, lanes, pairs_inputs);
                compare(128, 192, taps, lanes, pairs_inputs);
                compare(pairs_inputs ? 64 : 32, pairs_inputs ? 32 : 64, taps, lanes, pairs_inputs);
            }
    return 0;
}
