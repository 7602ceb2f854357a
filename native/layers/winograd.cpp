#include "winograd.hpp"

#include <algorithm>
#include <limits>

#include "../engine/parallel.hpp"
#include "../engine/pass.hpp"

namespace sn {

using dnnl::memory;
using winograd::outputs, winograd::positions, winograd::reach, winograd::side, winograd::taps;

namespace {
// Tiles that a thread takes at once, for which the weights are read once: three blocks of rows.
constexpr int64_t chunk = 42;
constexpr int64_t line = 64 / sizeof(float);

// How many tiles cover so many pixels.
int64_t up(int64_t pixels) {
    return (pixels + side - 1) / side;
}

bool is_plain_3_by_3(const Window& window) {
    const memory::dims ones = {1, 1}, none = {0, 0}, &size = window.weights;
    return size[size.size() - 1] == 3 && size[size.size() - 2] == 3 && window.strides == ones &&
           window.dilations == none;
}

float* floats(const memory& of) {
    return static_cast<float*>(of.get_data_handle());
}
}  // namespace

// Rows and matrices begin an odd number of cache lines apart: what is used together must not fall
// into the same few sets of a cache.
WinogradStack::WinogradStack(int64_t rows, int64_t columns)
    : row(columns / line % 2 ? columns : columns + line), step(rows * row) {
    if (step / line % 2 == 0) step += line;
}

// The products of a tile are 36 where a direct convolution has 9 a pixel, and the transform of the
// weights costs about as much as 64 tiles: what is left must be clearly less.  Little work goes
// down in the start of the threads.  (Measured on two cores with AVX-512; docs/decisions/0010.)
bool Winograd::suits(const Window& window, Pass pass) {
    if (!window.may_be_last || !winograd_loops() || !is_plain_3_by_3(window)) return false;
    const size_t axes = window.weights.size();
    const int64_t rows = window.weights[axes - 4], columns = window.weights[axes - 3];
    if (rows % line != 0 || columns % line != 0) return false;
    if (window.few_products) return true;
    constexpr int64_t fewest_channels = 32, fewest_products = 1 << 27, weights_in_tiles = 64;
    const memory::dims& made = pass == Pass::data ? window.source : window.target;
    const int64_t pixels = made[0] * made[2] * made[3];
    const int64_t tiles = made[0] * up(made[2]) * up(made[3]);
    return std::min(rows, columns) >= fewest_channels &&
           taps * pixels * rows * columns >= fewest_products &&
           5 * (tiles + weights_in_tiles) <= pixels;
}

Winograd::Winograd(const Window& window, Pass pass)
    : loops_(*winograd_loops()),
      reversed_(pass == Pass::data),
      images_(window.source[0]),
      groups_(window.weights.size() == 5 ? window.weights[0] : 1),
      top_(window.before[0]),
      left_(window.before[1]),
      source_(window.source, memory::data_type::f32, memory::format_tag::nhwc),
      target_(window.target, memory::data_type::f32, memory::format_tag::nhwc) {
    const auto plane = [&](const memory::dims& dims) {
        return Plane{dims[2], dims[3], dims[1], dims[1] / groups_};
    };
    in_ = plane(window.source), out_ = plane(window.target);
    if (reversed_) {
        std::swap(in_, out_), std::swap(source_, target_);
        top_ = 2 - top_, left_ = 2 - left_;
    }
    down_ = up(out_.rows), across_ = up(out_.columns);
    // Tap by tap, a matrix from the channels that are read to those that are written.
    memory::dims steps = {1, out_.group, 3 * matrix(), matrix()};
    if (reversed_) std::swap(steps[0], steps[1]);
    if (window.weights.size() == 5) steps.insert(steps.begin(), taps * matrix());
    weights_ = {window.weights, memory::data_type::f32, steps};
    zeros_.resize(static_cast<size_t>(std::max(in_.group, out_.group)));
}

// The channels that are written, in whole blocks of the product.
int64_t Winograd::padded() const {
    const int64_t width = loops_.block_columns;
    return (out_.group + width - 1) / width * width;
}

// In panels as wide as a block of the product; a window that is turned around has its last tap
// first.
void Winograd::transform_weights(const float* weights, const Stack& to) const {
    const int64_t depth = in_.group, width = loops_.block_columns;
    const int64_t tap = reversed_ ? -matrix() : matrix();
    const float* first = reversed_ ? weights + (taps - 1) * matrix() : weights;
    parallel(
        padded() / width * depth,
        [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t column = i / depth * width;
                const int64_t real = std::min(width, out_.group - column);
                float* row = to.at + i * width;
                loops_.weight(first + i % depth * out_.group + column, tap, row, to.step, real);
                loops_.weight(zeros_.data(), 0, row + real, to.step, width - real);
            }
        },
        positions * width);
}

void Winograd::read_tile(int64_t tile, const float* from, float* to, int64_t step) const {
    const float* at[positions];
    const int64_t row = tile / across_ % down_, image = tile / across_ / down_;
    in_.look(from + image * in_.rows * in_.columns * in_.channels, row * side - top_,
             tile % across_ * side - left_, reach, zeros_.data(), at);
    loops_.image(at, to, step, in_.group);
}

void Winograd::write_tile(int64_t tile, const float* from, int64_t step, const Group& group,
                          float* spare) const {
    float* at[outputs];
    const int64_t row = tile / across_ % down_, image = tile / across_ / down_;
    out_.look(group.to + image * out_.rows * out_.columns * out_.channels, row * side,
              tile % across_ * side, side, spare, at);
    const float least = group.end.relu ? 0 : -std::numeric_limits<float>::infinity();
    loops_.result(from, step, at, group.end.bias, group.end.adds, least, out_.group);
}

void Winograd::run_tiles(int64_t begin, int64_t end, const Group& group, const Stack& image,
                         const Stack& result, float* spare) const {
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

void Winograd::run(const memory& source, const memory& weights, const End& with,
                   const memory& target) const {
    const int64_t blocks = (tiles() + loops_.block_rows - 1) / loops_.block_rows;
    const int64_t parts = std::min<int64_t>(threads(), blocks);
    const int64_t each = (tiles() + parts * chunk - 1) / (parts * chunk);
    Stack factors(in_.group, padded());
    const Stack image(chunk, in_.group), result(chunk, padded());
    const int64_t own = image.size() + result.size() + padded();
    const auto floats_needed = static_cast<size_t>(factors.size() + parts * own);
    factors.at = static_cast<float*>(scratch().room(floats_needed * sizeof(float)));
    float* const room = factors.at + factors.size();
    for (int64_t g = 0; g < groups_; ++g) {
        transform_weights(floats(weights) + g * taps * matrix(), factors);
        Group group{floats(source) + g * in_.group, factors, floats(target) + g * out_.group, with};
        if (with.bias) group.end.bias += g * out_.group;
        parallel(
            parts,
            [=, &group](int64_t begin, int64_t end) {
                Stack here = image, there = result;
                here.at = room + begin * own;
                there.at = here.at + here.size();
                const int64_t first = begin * each, last = end * each, all = parts * each;
                for (int64_t i = first; i < last; ++i)
                    run_tiles(tiles() * i / all, tiles() * (i + 1) / all, group, here, there,
                              there.at + there.size());
            },
            tiles() * positions * out_.group);
    }
}

}  // namespace sn
