// The gradients of the weights: sums over all tiles, which do not depend on the number of threads.
#include <algorithm>

#include "../engine/parallel.hpp"
#include "../engine/pass.hpp"
#include "winograd.hpp"

namespace sn {

using dnnl::memory;
using winograd::most_outputs, winograd::positions;

namespace {
// What all threads share of the tiles whose products are added up before they go to memory, in
// floats, and the fewest such tiles.
constexpr int64_t shared = 1 << 18, fewest = 112;
// Pixels whose gradients are added up in float.
constexpr int64_t few = 1024;
constexpr int64_t line = 16;

float* floats(const memory& of) {
    return static_cast<float*>(of.get_data_handle());
}
}  // namespace

void Winograd::learn_tiles(int64_t begin, int64_t end, const Group& group, const Stack& image,
                           const Stack& slope) const {
    // What the channels do not fill of the last panel is zero.
    const int64_t filled = out_.group / line * line;
    const float* none[most_outputs];
    std::fill_n(none, most_outputs, zeros_.data());
    parallel(
        end - begin,
        [&](int64_t first, int64_t last) {
            for (int64_t t = first; t < last; ++t) {
                float* to = slope.at + t * slope.row;
                read_tile(begin + t, group.from, image.at + t * image.row, image.step);
                tile_.slope(none, to + filled, slope.step, padded() - filled);
                read_slope(out_, begin + t, group.to, to, slope.step);
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
        float* to = floats(weights) + g * tile_.taps() * matrix();
        parallel(
            in_.group,
            [&](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k)
                    tile_.gradient(sums.at + k * sums.row, sums.step, to + k * out_.group, matrix(),
                                   out_.group);
            },
            positions * out_.group);
    }
    if (bias) sum_bias(floats(slopes), floats(bias));
}

// Sixteen channels at a time, in an order that is the same for any number of threads.  The last
// sixteen may begin among those before.
void Winograd::sum_bias(const float* slopes, float* bias) const {
    const int64_t pixels = images_ * out_.rows * out_.columns, channels = out_.channels;
    parallel((channels + line - 1) / line,
             [=](int64_t begin, int64_t end) {
                 for (int64_t next = begin * line; next < std::min(end * line, channels);
                      next += line) {
                     const int64_t c = std::min(next, channels - line);
                     double total[line] = {};
                     for (int64_t first = 0; first < pixels; first += few) {
                         float part[line] = {};
                         const int64_t last = std::min(first + few, pixels);
                         for (int64_t i = first; i < last; ++i)
                             for (int64_t j = 0; j < line; ++j)
                                 part[j] += slopes[i * channels + c + j];
                         for (int64_t j = 0; j < line; ++j)
                             total[j] += static_cast<double>(part[j]);
                     }
                     for (int64_t j = next - c; j < line; ++j)
                         bias[c + j] = static_cast<float>(total[j]);
                 }
             },
             pixels * line);
}

}  // namespace sn
