// The gradients of the weights: sums over all tiles, which do not depend on the number of threads.
#include <algorithm>

#include "../engine/parallel.hpp"
#include "../engine/pass.hpp"
#include "winograd.hpp"

namespace sn {

using dnnl::memory;
using winograd::outputs, winograd::positions, winograd::side, winograd::taps;

namespace {
// What all threads share of the tiles whose products are added up before they go to memory, in
// floats, and the fewest such tiles.
constexpr int64_t shared = 1 << 21, fewest = 112;
// Pixels whose gradients are added up in float.
constexpr int64_t few = 1024;
constexpr int64_t line = 16;

float* floats(const memory& of) {
    return static_cast<float*>(of.get_data_handle());
}
}  // namespace

void Winograd::read_slope(int64_t tile, const float* from, float* to, int64_t step) const {
    const float* at[outputs];
    const int64_t row = tile / across_ % down_, image = tile / across_ / down_;
    out_.look(from + image * out_.rows * out_.columns * out_.channels, row * side,
              tile % across_ * side, side, static_cast<const float*>(zeros_.data()), at);
    loops_.slope(at, to, step, out_.group);
    std::fill_n(at, outputs, zeros_.data());
    loops_.slope(at, to + out_.group, step, padded() - out_.group);
}

void Winograd::learn_tiles(int64_t begin, int64_t end, const Group& group, const Stack& image,
                           const Stack& slope) const {
    parallel(
        end - begin,
        [&](int64_t first, int64_t last) {
            for (int64_t t = first; t < last; ++t) {
                read_tile(begin + t, group.from, image.at + t * image.row, image.step);
                read_slope(begin + t, group.to, slope.at + t * slope.row, slope.step);
            }
        },
        positions * (in_.group + out_.group));
    const int64_t width = loops_.block_columns, panels = padded() / width;
    parallel(
        positions * panels,
        [&](int64_t first, int64_t last) {
            for (int64_t i = first; i < last; ++i) {
                const int64_t p = i / panels, column = i % panels * width;
                loops_.multiply_across(
                    {image.at + p * image.step, 1, image.row, slope.at + p * slope.step + column,
                     slope.row, width, group.factors.at + p * group.factors.step + column,
                     group.factors.row, in_.group, width, end - begin, begin > 0});
            }
        },
        (end - begin) * in_.group * width);
}

void Winograd::learn(const memory& source, const memory& slopes, const memory& weights,
                     const memory& bias) const {
    const int64_t chunk = std::max(fewest, shared / (positions * (in_.group + out_.group)));
    const int64_t most = std::min(chunk, tiles());
    Stack image(most, in_.group), slope(most, padded()), sums(in_.group, padded());
    const auto room = static_cast<size_t>(image.size() + slope.size() + sums.size());
    image.at = static_cast<float*>(scratch().room(room * sizeof(float)));
    slope.at = image.at + image.size();
    sums.at = slope.at + slope.size();
    for (int64_t g = 0; g < groups_; ++g) {
        const Group read{floats(source) + g * in_.group, sums, floats(slopes) + g * out_.group, {}};
        for (int64_t begin = 0; begin < tiles(); begin += most)
            learn_tiles(begin, std::min(begin + most, tiles()), read, image, slope);
        float* to = floats(weights) + g * taps * matrix();
        parallel(
            in_.group,
            [&](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k)
                    loops_.gradient(sums.at + k * sums.row, sums.step, to + k * out_.group,
                                    matrix(), out_.group);
            },
            positions * out_.group);
    }
    if (bias) sum_bias(floats(slopes), floats(bias));
}

// Sixteen channels at a time, in an order that is the same for any number of threads.
void Winograd::sum_bias(const float* slopes, float* bias) const {
    const int64_t pixels = images_ * out_.rows * out_.columns, channels = out_.channels;
    parallel(
        channels / line,
        [=](int64_t begin, int64_t end) {
            for (int64_t c = begin * line; c < end * line; c += line) {
                double total[line] = {};
                for (int64_t first = 0; first < pixels; first += few) {
                    float part[line] = {};
                    const int64_t last = std::min(first + few, pixels);
                    for (int64_t i = first; i < last; ++i)
                        for (int64_t j = 0; j < line; ++j) part[j] += slopes[i * channels + c + j];
                    for (int64_t j = 0; j < line; ++j) total[j] += static_cast<double>(part[j]);
                }
                for (int64_t j = 0; j < line; ++j) bias[c + j] = static_cast<float>(total[j]);
            }
        },
        pixels * line);
}

}  // namespace sn
