// Maxima of windows of numbers of eight bits or of bfloat16 whose channels lie last: first across
// whole rows, then along one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "../engine/parallel.hpp"
#include "plane_pool.hpp"

namespace sn {

// Whole numbers in the order of the values, of which many are compared at a time; `turned` makes
// them of the bits of values, and the bits of them.
template <class T>
struct Ordered {
    using Key = T;
    template <class Keys>
    [[gnu::always_inline]] static Keys turned(Keys keys) {
        return keys;
    }
};

// bfloat16: below zero a greater number of bits is a smaller value.
template <>
struct Ordered<uint16_t> {
    using Key = int16_t;
    template <class Keys>
    [[gnu::always_inline]] static Keys turned(Keys keys) {
        return static_cast<Keys>(keys ^ ((keys >> 15) & 0x7fff));
    }
};

template <class T>
struct NarrowPool {
    using Key = typename Ordered<T>::Key;

    Span rows, columns;
    int64_t channels;
    // Whether values below zero become 0.
    bool clips;

    void run(const T* from, T* to, int64_t images) const {
        const NarrowPool pool = *this;
        const int64_t wide = columns.size * channels;
        parallel(images * rows.outputs, wide * rows.kernel,
                 [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
                     std::vector<Key> line(static_cast<size_t>(wide));
                     for (int64_t i = begin; i < end; ++i) {
                         const int64_t image = i / pool.rows.outputs, y = i % pool.rows.outputs;
                         pool.join_rows(from + image * pool.rows.size * wide, y, line.data());
                         pool.join_columns(line.data(),
                                           to + i * pool.columns.outputs * pool.channels);
                     }
                 });
    }

   private:
    [[gnu::always_inline]] static Key larger(Key a, Key b) { return a > b ? a : b; }
    [[gnu::always_inline]] static Key key(T value) {
        return Ordered<T>::turned(static_cast<Key>(value));
    }

    [[gnu::always_inline]] void join_rows(const T* image, int64_t y, Key* line) const {
        const int64_t wide = columns.size * channels, first = rows.begin(y), last = rows.end(y);
        const T* row = image + first * wide;
        const Key least = clips ? Key{0} : std::numeric_limits<Key>::min();
#pragma omp simd
        for (int64_t i = 0; i < wide; ++i) line[i] = larger(least, key(row[i]));
        for (int64_t r = first + 1; r < last; ++r) {
            row = image + r * wide;
#pragma omp simd
            for (int64_t i = 0; i < wide; ++i) line[i] = larger(line[i], key(row[i]));
        }
    }

    [[gnu::always_inline]] void join_columns(const Key* line, T* to) const {
        for (int64_t x = 0; x < columns.outputs; ++x, to += channels) {
            const Key* from = line + columns.begin(x) * channels;
            const int64_t count = columns.end(x) - columns.begin(x);
            // The last lanes are computed twice rather than a few of them alone.
            for (int64_t c = 0; c < channels; c += lanes)
                if (channels >= lanes)
                    join_lanes(from, count, std::min(c, channels - lanes), to);
                else
                    join_few(from, count, to);
        }
    }

    static constexpr int64_t lanes = 16;
    using Lanes [[gnu::vector_size(lanes * sizeof(Key))]] = Key;

    [[gnu::always_inline]] void join_lanes(const Key* from, int64_t count, int64_t c, T* to) const {
        Lanes most, other;
        std::memcpy(&most, from + c, sizeof most);
        for (int64_t i = 1; i < count; ++i) {
            std::memcpy(&other, from + i * channels + c, sizeof other);
            most = most > other ? most : other;
        }
        most = Ordered<T>::turned(most);
        std::memcpy(to + c, &most, sizeof most);
    }

    [[gnu::always_inline]] void join_few(const Key* from, int64_t count, T* to) const {
        for (int64_t c = 0; c < channels; ++c) {
            Key most = from[c];
            for (int64_t i = 1; i < count; ++i) most = larger(most, from[i * channels + c]);
            to[c] = static_cast<T>(Ordered<T>::turned(most));
        }
    }
};

}  // namespace sn
