// The gradients of the weights: sums over all tiles, which do not depend on the number of threads.
#include <algorithm>

#include "../engine/bfloat16.hpp"
#include "../engine/parallel.hpp"
#include "../engine/pass.hpp"
#include "winograd.hpp"

namespace sn {

using dnnl::memory;
using winograd::positions;

namespace {
// What all threads share of the tiles whose products are added up before they go to memory, in
// floats, and the fewest such tiles.
constexpr int64_t shared = 1 << 18, fewest = 112;
// The same where each thread has sums of its own.
constexpr int64_t alone = 64;
// Pixels whose gradients are added up in float.
constexpr int64_t few = 1024;
constexpr int64_t line = 16;
}  // namespace

// Small sums are kept separately for several slices of the tiles and added up at the end, so that
// threads share nothing before.  Slices depend on shapes alone, and so do results.
template <class T>
int64_t Winograd<T>::slices() const {
    constexpr int64_t most_floats = 1 << 20;
    const int64_t fit =
        std::min(tiles() / fewest, most_floats / (positions * in_.group * padded()));
    for (const int64_t count : {16, 8})
        if (fit >= count) return count;
    return 1;
}

// Tiles first ... last - 1 of those from `begin` on.
template <class T>
void Winograd<T>::read_tiles(int64_t begin, int64_t first, int64_t last, const Group& group,
                             const Stack& image, const Stack& slope) const {
    for (int64_t t = first; t < last; ++t) {
        read_tile(begin + t, group.from, image.at + t * image.row, image.step);
        read_slope(out_, begin + t, group.to, slope.at + t * slope.row, slope.step);
    }
}

// Panels first ... last - 1 of the sums of all positions.
template <class T>
void Winograd<T>::multiply_panels(int64_t first, int64_t last, int64_t count, bool adds,
                                  const Stack& image, const Stack& slope, const Stack& sums) const {
    const int64_t width = loops_.block_columns, panels = padded() / width;
    for (int64_t i = first; i < last; ++i) {
        const int64_t p = i / panels, column = i % panels * width;
        loops_.multiply_across(
            {image.at + p * image.step, 1, image.row, slope.at + p * slope.step + column, slope.row,
             width, sums.at + p * sums.step + column, sums.row, in_.group, width, count, adds});
    }
}

template <class T>
void Winograd<T>::learn_together(int64_t rows, const Group& group, const Stack& image,
                                 const Stack& slope) const {
    const int64_t panels = positions * padded() / loops_.block_columns;
    for (int64_t begin = 0; begin < tiles(); begin += rows) {
        const int64_t count = std::min(rows, tiles() - begin);
        parallel(count, positions * (in_.group + out_.group), [&](int64_t first, int64_t last) {
            read_tiles(begin, first, last, group, image, slope);
        });
        parallel(panels, count * in_.group * loops_.block_columns,
                 [&](int64_t first, int64_t last) {
                     multiply_panels(first, last, count, begin > 0, image, slope, group.factors);
                 });
    }
}

template <class T>
void Winograd<T>::learn_slice(int64_t begin, int64_t end, const Group& group, const Stack& image,
                              const Stack& slope, const Stack& sums) const {
    const int64_t panels = positions * padded() / loops_.block_columns;
    for (int64_t at = begin; at < end; at += alone) {
        const int64_t count = std::min(alone, end - at);
        read_tiles(at, 0, count, group, image, slope);
        multiply_panels(0, panels, count, at > begin, image, slope, sums);
    }
}

template <class T>
void Winograd<T>::learn_apart(int64_t parts, const Group& group, const Stack& image,
                              const Stack& slope) const {
    const int64_t count = slices(), size = group.factors.size();
    parallel(parts, tiles() * positions * out_.group,
             [&, image, slope](int64_t begin, int64_t end) {
                 Stack here = image, there = slope, sums = group.factors;
                 here.at += begin * image.size(), there.at += begin * slope.size();
                 for (int64_t s = count * begin / parts; s < count * end / parts; ++s) {
                     sums.at = group.factors.at + s * size;
                     learn_slice(tiles() * s / count, tiles() * (s + 1) / count, group, here, there,
                                 sums);
                 }
             });
    parallel(size, count, [=, to = group.factors.at](int64_t begin, int64_t end) {
        for (int64_t s = 1; s < count; ++s)
            for (int64_t i = begin; i < end; ++i) to[i] += to[s * size + i];
    });
}

template <class T>
void Winograd<T>::learn(const memory& source, const memory& slopes, const memory& weights,
                        const memory& bias) const {
    const int64_t count = slices(), parts = std::min<int64_t>(threads(), count);
    const int64_t chunk = std::max(fewest, shared / (positions * (in_.group + out_.group)));
    const int64_t rows = count > 1 ? alone : std::min(chunk, tiles());
    Stack image(rows, in_.group), slope(rows, padded()), sums(in_.group, padded());
    const auto room = parts * (image.size() + slope.size()) + count * sums.size();
    image.at = static_cast<float*>(scratch().room(static_cast<size_t>(room) * sizeof(float)));
    slope.at = image.at + parts * image.size();
    sums.at = slope.at + parts * slope.size();
    // The part of the last panel that the channels do not fill stays zero.
    if (padded() > out_.group) clear(slope.at, parts * slope.size());
    for (int64_t g = 0; g < groups_; ++g) {
        const Group read{
            values_of<T>(source) + g * in_.group, sums, values_of<T>(slopes) + g * out_.group, {}};
        if (count > 1)
            learn_apart(parts, read, image, slope);
        else
            learn_together(rows, read, image, slope);
        float* to = values_of<float>(weights) + g * tile_.taps() * matrix();
        parallel_each(in_.group, positions * out_.group, [&](int64_t k) {
            tile_.gradient(sums.at + k * sums.row, sums.step, to + k * out_.group, matrix(),
                           out_.group);
        });
    }
    if (bias) sum_bias(values_of<T>(slopes), values_of<float>(bias));
}

// Sixteen channels at a time, in an order that is the same for any number of threads.  The last
// sixteen may begin among those before.
template <class T>
void Winograd<T>::sum_bias(const T* slopes, float* bias) const {
    const int64_t pixels = images_ * out_.rows * out_.columns, channels = out_.channels;
    parallel((channels + line - 1) / line, pixels * line, [=](int64_t begin, int64_t end) {
        for (int64_t next = begin * line; next < std::min(end * line, channels); next += line) {
            const int64_t c = std::min(next, channels - line);
            double total[line] = {};
            for (int64_t first = 0; first < pixels; first += few) {
                float part[line] = {};
                const int64_t last = std::min(first + few, pixels);
                for (int64_t i = first; i < last; ++i)
                    for (int64_t j = 0; j < line; ++j) part[j] += slopes[i * channels + c + j];
                for (int64_t j = 0; j < line; ++j) total[j] += static_cast<double>(part[j]);
            }
            for (int64_t j = next - c; j < line; ++j) bias[c + j] = static_cast<float>(total[j]);
        }
    });
}

template void Winograd<float>::learn(const memory&, const memory&, const memory&,
                                     const memory&) const;
template void Winograd<BFloat16>::learn(const memory&, const memory&, const memory&,
                                        const memory&) const;

}  // namespace sn
