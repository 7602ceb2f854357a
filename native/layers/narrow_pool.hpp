// Maxima of windows of numbers of eight bits whose channels lie last: first across whole rows, then
// along one.
#pragma once

#include <limits>
#include <vector>

#include "../engine/parallel.hpp"
#include "plane_pool.hpp"

namespace sn {

template <class T>
struct NarrowPool {
    Span rows, columns;
    int64_t channels;
    // Whether values below zero become 0.
    bool clips;

    void run(const T* from, T* to, int64_t images) const {
        const NarrowPool pool = *this;
        const int64_t wide = columns.size * channels;
        parallel(
            images * rows.outputs,
            [=](int64_t begin, int64_t end) {
                std::vector<T> line(static_cast<size_t>(wide));
                for (int64_t i = begin; i < end; ++i) {
                    const int64_t image = i / pool.rows.outputs, y = i % pool.rows.outputs;
                    pool.join_rows(from + image * pool.rows.size * wide, y, line.data());
                    pool.join_columns(line.data(), to + i * pool.columns.outputs * pool.channels);
                }
            },
            wide * rows.kernel);
    }

   private:
    [[gnu::always_inline]] static T larger(T a, T b) { return a > b ? a : b; }

    [[gnu::always_inline]] void join_rows(const T* image, int64_t y, T* line) const {
        const int64_t wide = columns.size * channels, first = rows.begin(y), last = rows.end(y);
        const T* row = image + first * wide;
        const T least = clips ? T{0} : std::numeric_limits<T>::min();
#pragma omp simd
        for (int64_t i = 0; i < wide; ++i) line[i] = larger(least, row[i]);
        for (int64_t r = first + 1; r < last; ++r) {
            row = image + r * wide;
#pragma omp simd
            for (int64_t i = 0; i < wide; ++i) line[i] = larger(line[i], row[i]);
        }
    }

    [[gnu::always_inline]] void join_columns(const T* line, T* to) const {
        constexpr int64_t lanes = 16;
        for (int64_t x = 0; x < columns.outputs; ++x, to += channels) {
            const T* from = line + columns.begin(x) * channels;
            const int64_t count = columns.end(x) - columns.begin(x);
            // The last lanes are computed twice rather than a few of them alone.
            for (int64_t c = 0; c < channels; c += lanes)
                if (channels >= lanes)
                    join<lanes>(from, count, std::min(c, channels - lanes), lanes, to);
                else
                    join<0>(from, count, c, channels - c, to);
        }
    }

    template <int64_t fixed>
    [[gnu::always_inline]] void join(const T* from, int64_t count, int64_t c, int64_t some,
                                     T* to) const {
        const int64_t width = fixed > 0 ? fixed : some;
        T most[16];
#pragma omp simd
        for (int64_t l = 0; l < width; ++l) most[l] = from[c + l];
        for (int64_t i = 1; i < count; ++i)
#pragma omp simd
            for (int64_t l = 0; l < width; ++l)
                most[l] = larger(most[l], from[i * channels + c + l]);
#pragma omp simd
        for (int64_t l = 0; l < width; ++l) to[c + l] = most[l];
    }
};

}  // namespace sn
