// Matrix products in blocks that fit the caches of common processors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../engine/parallel.hpp"

namespace portable {

// A tile of sums that fits the registers of the oldest processors with vectors of four floats.
constexpr int64_t tile_rows = 6, tile_columns = 8;
// A block of factors: so many values of the sums, columns and rows.
constexpr int64_t block_depth = 256, block_columns = 128, block_rows = 96;

// sums[6][8] = a b, of packed values: six, and eight, of each of `depth` steps.
void multiply_tile(int64_t depth, const float* a, const float* b, float* sums);

inline int64_t up(int64_t value, int64_t part) {
    return (value + part - 1) / part * part;
}

struct Range {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
};

// c = alpha A B, or c += alpha A B, for these rows and columns, in this thread.
//   left(row, depth, to)      copies a part of a row of A, of depth.size() values, to `to`
//   right(depth, columns, to) the same of a part of a row of B
//   place(row, column)        where a sum is, from c on
// B is read row by row where `along`, else column by column: right(column, depth, to).
template <bool along, class Left, class Right, class Place>
void multiply(Range rows, Range columns, int64_t depth, float alpha, Left&& left, Right&& right,
              float* c, Place&& place, bool adds) {
    thread_local std::vector<float> a, b, line;
    a.resize(static_cast<size_t>(up(block_rows, tile_rows) * block_depth));
    b.resize(static_cast<size_t>(block_columns * block_depth));
    line.resize(static_cast<size_t>(std::max(block_columns, block_depth)));
    float sums[tile_rows * tile_columns];
    for (int64_t column = columns.begin; column < columns.end; column += block_columns) {
        const Range here{column, std::min(columns.end, column + block_columns)};
        for (int64_t first = 0; first < depth; first += block_depth) {
            const Range deep{first, std::min(depth, first + block_depth)};
            const int64_t n = deep.size();
            if (here.size() % tile_columns != 0) std::fill(b.begin(), b.end(), 0.0F);
            for (int64_t i = along ? deep.begin : here.begin; i < (along ? deep : here).end; ++i) {
                right(i, along ? here : deep, line.data());
                if (along)
                    for (int64_t j = 0; j < here.size(); ++j)
                        b[static_cast<size_t>(j / tile_columns * tile_columns * n +
                                              (i - first) * tile_columns + j % tile_columns)] =
                            line[static_cast<size_t>(j)];
                else
                    for (int64_t k = 0, j = i - column; k < n; ++k)
                        b[static_cast<size_t>(j / tile_columns * tile_columns * n +
                                              k * tile_columns + j % tile_columns)] =
                            line[static_cast<size_t>(k)];
            }
            const bool sets = first == 0 && !adds;
            for (int64_t row = rows.begin; row < rows.end; row += block_rows) {
                const int64_t m = std::min(rows.end - row, block_rows);
                if (m % tile_rows != 0) std::fill(a.begin(), a.end(), 0.0F);
                for (int64_t i = 0; i < m; ++i) {
                    left(row + i, deep, line.data());
                    float* to = a.data() + i / tile_rows * tile_rows * n + i % tile_rows;
                    for (int64_t k = 0; k < n; ++k)
                        to[k * tile_rows] = line[static_cast<size_t>(k)];
                }
                for (int64_t j = 0; j < here.size(); j += tile_columns)
                    for (int64_t i = 0; i < m; i += tile_rows) {
                        multiply_tile(n, a.data() + i * n, b.data() + j * n, sums);
                        const int64_t high = std::min(m - i, tile_rows);
                        const int64_t wide = std::min(here.size() - j, tile_columns);
                        for (int64_t y = 0; y < high; ++y)
                            for (int64_t x = 0; x < wide; ++x) {
                                float& sum = c[place(row + i + y, column + j + x)];
                                const float more = alpha * sums[y * tile_columns + x];
                                sum = sets ? more : sum + more;
                            }
                    }
            }
        }
    }
}

// Calls body(rows, columns) for parts of a matrix that do not depend on the number of threads.
template <class F>
void each_part(int64_t rows, int64_t columns, int64_t depth, F&& body) {
    constexpr int64_t high = 4 * block_rows, wide = block_columns;
    const int64_t down = (rows + high - 1) / high, across = (columns + wide - 1) / wide;
    sn::parallel(
        down * across,
        [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t row = i % down * high, column = i / down * wide;
                body(Range{row, std::min(rows, row + high)},
                     Range{column, std::min(columns, column + wide)});
            }
        },
        std::min(rows, high) * std::min(columns, wide) * depth / 8);
}

// A matrix somewhere in memory.
struct Strided {
    const float* values;
    int64_t row, column;
    void operator()(int64_t i, Range along, float* to) const {
        const float* from = values + i * row + along.begin * column;
        if (column == 1)
            std::copy_n(from, along.size(), to);
        else
            for (int64_t k = 0; k < along.size(); ++k) to[k] = from[k * column];
    }
};

// c = alpha a b, or c += alpha a b; rows of c are `row_c` apart.
void multiply(int64_t m, int64_t n, int64_t k, float alpha, const Strided& a, const Strided& b,
              float* c, int64_t row_c, bool adds);

}  // namespace portable
