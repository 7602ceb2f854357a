#include "winograd.hpp"

#include <algorithm>
#include <limits>

#include "../engine/bfloat16.hpp"
#include "../engine/instructions.hpp"
#include "../engine/parallel.hpp"
#include "../engine/pass.hpp"

namespace sn {

using dnnl::memory;
using winograd::most_columns, winograd::most_outputs, winograd::most_taps, winograd::positions,
    winograd::reach;

namespace {
// Tiles that a thread takes at once, for which the weights are read once: three blocks of rows.
constexpr int64_t chunk = 42;
constexpr int64_t line = 64 / sizeof(float);

// The loops for this window on this processor; null where none would be faster.
const WinogradTile* tile_of(const Window& window) {
    const WinogradLoops* loops = winograd_loops();
    const memory::dims ones = {1, 1}, none = {0, 0}, &size = window.weights;
    if (!loops || !window.is_image || window.strides != ones || window.dilations != none)
        return nullptr;
    const int64_t rows = size[size.size() - 2], columns = size[size.size() - 1];
    for (const WinogradTile* tile : {&loops->three, &loops->five})
        if (rows == tile->window && columns == tile->window) return tile;
    return nullptr;
}

// How many tiles of `side` pixels cover `pixels`.
int64_t up(int64_t pixels, int64_t side) {
    return (pixels + side - 1) / side;
}

// `values` rounded up to whole parts.
int64_t whole(int64_t values, int64_t part) {
    return (values + part - 1) / part * part;
}

}  // namespace

// Rows and matrices begin an odd number of cache lines apart, so that values that are used together
// do not fall into the same few sets of a cache.
WinogradStack::WinogradStack(int64_t rows, int64_t columns) : row(whole(columns, line)) {
    if (row / line % 2 == 0) row += line;
    step = rows * row;
    if (step / line % 2 == 0) step += line;
}

namespace {
int64_t tiles_of(const memory::dims& made, int64_t side) {
    return made[0] * up(made[2], side) * up(made[3], side);
}

bool is_narrow(const Window& window) {
    return window.factors == memory::data_type::bf16;
}

// Whether backward to the data takes fewer tiles as the transposed forward pass: without padding
// there are fewer outputs than inputs.  Threads share the images then.  Pixels to which several
// tiles add would be rounded several times in bfloat16.
bool spreads(const Window& window, const WinogradTile& tile) {
    constexpr int64_t fewest_images = 8;
    return !is_narrow(window) && window.source[0] >= fewest_images &&
           tiles_of(window.target, tile.side) < tiles_of(window.source, tile.side);
}

bool fills_vectors(const Window& window) {
    const size_t axes = window.weights.size();
    return window.weights[axes - 4] % line == 0 && window.weights[axes - 3] % line == 0;
}

// Products of both ways, in whole vectors and blocks of them.  Transforms cost about what 16 more
// channels on either side would, that of the weights as much as 64 or 96 more tiles: what is left
// must be clearly less.  For little work the start of the threads costs more.  Direct sums in
// bfloat16 take half the time, those in AMX's tiles next to none.  (Measured on two cores with
// AVX-512; docs/decisions/0010.)
bool suits(const Window& window, WindowPass::Pass pass) {
    const WinogradTile* tile = tile_of(window);
    if (!tile) return false;
    const size_t axes = window.weights.size();
    int64_t made = window.weights[axes - 4], read = window.weights[axes - 3];
    if (std::min(made, read) < line) return false;
    if (window.few_products) return true;
    if (is_narrow(window) && has_amx()) return false;
    constexpr int64_t fewest_products = 1 << 26, transform = 16;
    const bool to_data = pass == WindowPass::Pass::data;
    if (to_data) std::swap(made, read);
    const bool is_larger = to_data && !spreads(window, *tile);
    const int64_t tiles = tiles_of(is_larger ? window.source : window.target, tile->side);
    const int64_t pixels = std::min(tiles_of(window.source, 1), tiles_of(window.target, 1));
    const int64_t weights = 46 + 2 * tile->taps();
    const int64_t direct = tile->taps() * pixels * read * whole(made, line);
    // Of channels that fill no vectors oneDNN's direct sums take as long as in float32.
    const int64_t half = is_narrow(window) && fills_vectors(window) ? 2 : 1;
    const int64_t few = positions * (tiles + weights) * (read + transform) *
                        (whole(made, most_columns) + transform);
    return direct >= fewest_products && 11 * few * half <= 10 * direct;
}
}  // namespace

template <class T>
Winograd<T>::Winograd(const Window& window, Pass pass)
    : loops_(*winograd_loops()),
      tile_(*tile_of(window)),
      images_(window.source[0]),
      groups_(window.weights.size() == 5 ? window.weights[0] : 1),
      top_(window.before[0]),
      left_(window.before[1]) {
    source_ = {window.source, window.factors, memory::format_tag::nhwc};
    target_ = {window.target, window.factors, memory::format_tag::nhwc};
    const auto plane = [&](const memory::dims& dims) {
        return Plane{dims[2], dims[3], dims[1], dims[1] / groups_};
    };
    in_ = plane(window.source), out_ = plane(window.target);
    // Tap by tap, a matrix from the channels that are read to those that are written.
    memory::dims steps = {1, out_.group, tile_.window * matrix(), matrix()};
    if (pass == Pass::data) {
        spreads_ = spreads(window, tile_), turns_ = !spreads_;
        std::swap(in_, out_), std::swap(source_, target_);
        steps[0] = out_.group, steps[1] = 1;
    }
    if (turns_) top_ = tile_.window - 1 - top_, left_ = tile_.window - 1 - left_;
    const Plane& tiled = spreads_ ? in_ : out_;
    down_ = up(tiled.rows, tile_.side), across_ = up(tiled.columns, tile_.side);
    if (window.weights.size() == 5) steps.insert(steps.begin(), tile_.taps() * matrix());
    weights_ = {window.weights, memory::data_type::f32, steps};
    zeros_.resize(static_cast<size_t>(std::max({in_.group, out_.group, loops_.block_columns})));
}

// The upper left of a tile's outputs.
template <class T>
typename Winograd<T>::Place Winograd<T>::place(int64_t tile) const {
    return {tile / across_ / down_, tile / across_ % down_ * tile_.side,
            tile % across_ * tile_.side};
}

// The channels that are written, in whole blocks of the product.
template <class T>
int64_t Winograd<T>::padded() const {
    return whole(out_.group, loops_.block_columns);
}

// In panels as wide as a block of the product; a window that is turned around has its last tap
// first.
template <class T>
void Winograd<T>::transform_weights(const float* weights, const Stack& to) const {
    const int64_t depth = in_.group, width = loops_.block_columns;
    const int64_t tap = turns_ ? -matrix() : matrix();
    const float* first = turns_ ? weights + (tile_.taps() - 1) * matrix() : weights;
    parallel_each(padded() / width * depth, positions * width, [=](int64_t i) {
        const int64_t column = i / depth * width, real = out_.group - column;
        const float* from = first + i % depth * out_.group + column;
        if (real >= width)
            tile_.weight(from, tap, to.at + i * width, to.step, width);
        else
            transform_last_weights(from, tap, real, to.at + i * width, to.step);
    });
}

// A panel that the channels fill only in part.
template <class T>
void Winograd<T>::transform_last_weights(const float* from, int64_t tap, int64_t real, float* to,
                                         int64_t step) const {
    constexpr int64_t width = most_columns;
    float panel[most_taps * width] = {};
    for (int64_t t = 0; t < tile_.taps(); ++t) std::copy_n(from + t * tap, real, panel + t * width);
    tile_.weight(panel, width, to, step, loops_.block_columns);
}

template <class T>
void Winograd<T>::read_tile(int64_t tile, const T* from, float* to, int64_t step) const {
    if (spreads_) return read_slope(in_, tile, from, to, step);
    const T* at[positions];
    const auto [image, row, column] = place(tile);
    in_.look(from + image * in_.size(), row - top_, column - left_, reach, zeros_.data(), at);
    loops_.image(at, to, step, in_.group);
}

template <class T>
void Winograd<T>::read_slope(const Plane& slopes, int64_t tile, const T* from, float* to,
                             int64_t step) const {
    const T* at[most_outputs];
    const auto [image, row, column] = place(tile);
    slopes.look(from + image * slopes.size(), row, column, tile_.side, zeros_.data(), at);
    tile_.slope(at, to, step, slopes.group);
}

template <class T>
void Winograd<T>::write_tile(int64_t tile, const float* from, int64_t step, const Group& group,
                             T* spare) const {
    T* at[positions];
    const auto [image, row, column] = place(tile);
    T* to = group.to + image * out_.size();
    const float lowest = -std::numeric_limits<float>::infinity();
    if (spreads_) {
        out_.look(to, row - top_, column - left_, reach, spare, at);
        loops_.spread(from, step, at, nullptr, true, lowest, out_.group);
    } else {
        out_.look(to, row, column, tile_.side, spare, at);
        const float least = group.end.relu ? 0 : lowest;
        tile_.result(from, step, at, group.end.bias, group.end.adds, least, out_.group);
    }
}

template <class T>
void Winograd<T>::run_tiles(int64_t begin, int64_t end, const Group& group, const Stack& image,
                            const Stack& result, T* spare) const {
    for (int64_t t = begin; t < end; ++t)
        read_tile(t, group.from, image.at + (t - begin) * image.row, image.step);
    for (int p = 0; p < positions; ++p)
        loops_.multiply({image.at + p * image.step, image.row, 1,
                         group.factors.at + p * group.factors.step, loops_.block_columns,
                         loops_.block_columns * in_.group, result.at + p * result.step, result.row,
                         end - begin, out_.group, in_.group, false});
    for (int64_t t = begin; t < end; ++t)
        write_tile(t, result.at + (t - begin) * result.row, result.step, group, spare);
}

// The first tile of a thread: of an image where tiles add to those beside them.
template <class T>
int64_t Winograd<T>::begin_of(int64_t part, int64_t parts) const {
    return spreads_ ? images_ * part / parts * down_ * across_ : tiles() * part / parts;
}

template <class T>
void Winograd<T>::run(const memory& source, const memory& weights, const End& with,
                      const memory& target) const {
    const int64_t blocks = (tiles() + loops_.block_rows - 1) / loops_.block_rows;
    const int64_t parts = std::min<int64_t>(threads(), blocks);
    Stack factors(in_.group, padded());
    const Stack image(chunk, in_.group), result(chunk, padded());
    const int64_t own = image.size() + result.size() + padded();
    const auto floats_needed = static_cast<size_t>(factors.size() + parts * own);
    factors.at = static_cast<float*>(scratch().room(floats_needed * sizeof(float)));
    float* const room = factors.at + factors.size();
    if (spreads_) clear(values_of<float>(target), images_ * out_.size());
    for (int64_t g = 0; g < groups_; ++g) {
        transform_weights(values_of<float>(weights) + g * tile_.taps() * matrix(), factors);
        Group group{values_of<T>(source) + g * in_.group, factors,
                    values_of<T>(target) + g * out_.group, with};
        if (with.bias) group.end.bias += g * out_.group;
        parallel(parts, tiles() * positions * out_.group, [=, &group](int64_t begin, int64_t end) {
            Stack here = image, there = result;
            here.at = room + begin * own;
            there.at = here.at + here.size();
            const int64_t first = begin_of(begin, parts), all = begin_of(end, parts) - first;
            const int64_t times = (all + chunk - 1) / chunk;
            for (int64_t i = 0; i < times; ++i)
                run_tiles(first + all * i / times, first + all * (i + 1) / times, group, here,
                          there, reinterpret_cast<T*>(there.at + there.size()));
        });
    }
}

template class Winograd<float>;
template class Winograd<BFloat16>;

bool winograd_loses_in_bf16(const Window& window) {
    if (has_amx() || fills_vectors(window) || window.few_products) return false;
    Window wide = window;
    wide.factors = memory::data_type::f32;
    using Part = WindowPass::Pass;
    const auto all_suit = [](const Window& one) {
        return suits(one, Part::forward) && suits(one, Part::data) && suits(one, Part::weights);
    };
    return all_suit(wide) && !all_suit(window);
}

std::unique_ptr<WindowPass> make_winograd(const Window& window, WindowPass::Pass pass) {
    if (!suits(window, pass)) return nullptr;
    if (is_narrow(window)) return std::make_unique<Winograd<BFloat16>>(window, pass);
    return std::make_unique<Winograd<float>>(window, pass);
}

}  // namespace sn
