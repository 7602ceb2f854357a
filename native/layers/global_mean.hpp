// The mean of each channel of each image, in the layout that the images have.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "../engine/channels.hpp"
#include "../engine/instructions.hpp"
#include "../engine/int8.hpp"
#include "../engine/lanes.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace global_mean {
// Channels whose sums lie in registers; and, in bfloat16, of which lines would be read piece by
// piece, the most that are added up at once, with so many pixels before a sum is put into memory.
constexpr int64_t least = 4 * lanes, together = 4;
template <class T>
constexpr bool is_wide = sizeof(T) == 2;
template <class T>
constexpr int64_t most = is_wide<T> ? 1024 : least;

// Of so many channels those that are one thread's: neighbours lie together in memory.
template <class T>
int64_t strip_of(const Channels& view) {
    const int64_t parts = threads() > 1 ? (2 * threads() + view.rows() - 1) / view.rows() : 1;
    const int64_t wanted = (view.block + parts * lanes - 1) / (parts * lanes) * lanes;
    return std::clamp(wanted, least, most<T>);
}

// The sums of neighbouring channels, more than registers hold, over pixels `step` apart.
template <class T>
SN_INLINE void add_up_wide(const T* from, int64_t pixels, int64_t step, int64_t width,
                           float* sums) {
    const int64_t vectors = (width + lanes - 1) / lanes;
    int64_t at[most<T> / lanes];
    Lanes totals[most<T> / lanes];
    // The last vector begins where all of its channels are.
    for (int64_t v = 0; v < vectors; ++v)
        at[v] = std::min(v * lanes, width - lanes), totals[v] = Lanes{};
    int64_t p = 0;
    for (; p + together <= pixels; p += together) {
        const T* rows = from + p * step;
        for (int64_t v = 0; v < vectors; ++v) {
            const T* x = rows + at[v];
            totals[v] += (lanes_of(x) + lanes_of(x + step)) +
                         (lanes_of(x + 2 * step) + lanes_of(x + 3 * step));
        }
    }
    for (; p < pixels; ++p)
        for (int64_t v = 0; v < vectors; ++v) totals[v] += lanes_of(from + p * step + at[v]);
    for (int64_t v = 0; v < vectors; ++v) put(totals[v], sums + at[v]);
}

// The sums of `width` neighbouring channels over pixels `step` apart.
template <class Vector, class T>
SN_INLINE void add_up(const T* from, int64_t pixels, int64_t step, int64_t width, float* sums) {
    constexpr int64_t lanes = sizeof(Vector) / sizeof(float);
    if (width < lanes) {
        for (int64_t p = 0; p < pixels; ++p)
            for (int64_t c = 0; c < width; ++c) sums[c] += from[p * step + c];
        return;
    }
    if (width == lanes) {
        Vector even{}, odd{};
        int64_t p = 0;
        for (; p + 2 <= pixels; p += 2) {
            even += lanes_of<Vector>(from + p * step);
            odd += lanes_of<Vector>(from + (p + 1) * step);
        }
        if (p < pixels) even += lanes_of<Vector>(from + p * step);
        put(even + odd, sums);
        return;
    }
    if constexpr (is_wide<T>) return add_up_wide(from, pixels, step, width, sums);
    constexpr int64_t vectors = least / lanes;
    int64_t at[vectors];
    Vector totals[vectors] = {};
    // The last vector begins where all of its channels are.
    for (int64_t v = 0; v < vectors; ++v) at[v] = std::min(v * lanes, width - lanes);
    for (int64_t p = 0; p < pixels; ++p)
        for (int64_t v = 0; v < vectors; ++v)
            totals[v] += lanes_of<Vector>(from + p * step + at[v]);
    for (int64_t v = 0; v < vectors; ++v) put(totals[v], sums + at[v]);
}

// Of one channel: as many sums as a vector has lanes.
template <class Vector, class T>
SN_INLINE float add_row(const T* from, int64_t pixels) {
    constexpr int64_t lanes = sizeof(Vector) / sizeof(float);
    Vector totals{};
    int64_t p = 0;
    for (; p + lanes <= pixels; p += lanes) totals += lanes_of<Vector>(from + p);
    float sum = 0;
    for (int64_t l = 0; l < lanes; ++l) sum += totals[l];
    for (; p < pixels; ++p) sum += from[p];
    return sum;
}

template <class Vector, class T>
void run(const Channels& view, const T* from, float step, float* to) {
    const int64_t strip = strip_of<T>(view), strips = (view.block + strip - 1) / strip;
    const float share = step / static_cast<float>(view.inner);
    parallel_each(view.rows() * strips, view.inner * std::min(strip, view.block),
                  [=](int64_t item) __attribute__((always_inline)) {
                      const int64_t row = item / strips, first = item % strips * strip;
                      const T* image = from + row * view.row_size();
                      float* means =
                          to + row / view.groups * view.channels + row % view.groups * view.block;
                      if (view.block == 1) {
                          *means = share * add_row<Vector>(image, view.inner);
                          return;
                      }
                      float sums[most<T>] = {};
                      const int64_t width = std::min(strip, view.block - first);
                      add_up<Vector>(image + first, view.inner, view.block, width, sums);
                      const int64_t real = std::min(width, view.real(row) - first);
                      for (int64_t c = 0; c < real; ++c) means[first + c] = share * sums[c];
                  });
}
}  // namespace global_mean

// `top` has a number for each channel of each image of `bottom`.
inline void mean_of_channels(const Tensor& bottom, Tensor& top) {
    const Channels view = channels_of(bottom, bottom.newest());
    const auto to = top.write(top.plain());
    const auto run = [&](const auto* from, float step) {
        if constexpr (std::is_same_v<decltype(from), const float*>)
            if (!has_avx512())
                return global_mean::run<HalfLanes>(view, from, step, values_of<float>(to));
        global_mean::run<Lanes>(view, from, step, values_of<float>(to));
    };
    const auto bytes = bottom.int8();
    if (bytes && retyped(bytes->desc, dnnl::memory::data_type::f32) == view.desc) {
        const auto from = bottom.read(*bytes);
        return typed_bytes(bytes->desc,
                           [&](auto type) { run(values_of<decltype(type)>(from), bytes->step); });
    }
    const auto from = bottom.read(view.desc);
    typed(view.desc, [&](auto type) { run(values_of<decltype(type)>(from), 1.0F); });
}

}  // namespace sn
