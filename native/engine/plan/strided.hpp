// Blobs that are other blobs' values in another order: what readers need to go to the source.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sn {

// Positions in memory, along nested axes: the outermost first.
struct Axis {
    int64_t size, step;
    bool operator==(const Axis& other) const { return size == other.size && step == other.step; }
};
using Walk = std::vector<Axis>;

// The values of a blob, in its order, as places in another one; multiplied by a factor.
struct Strided {
    int64_t offset = 0;
    Walk axes;
    float factor = 1;
};

// All of `count` values, where they are.
inline Strided as_they_are(int64_t count) {
    return {0, {{count, 1}}, 1};
}

// Axes in order, of which axis i has the steps of axis order[i] of plain rows of these sizes.
Strided permuted(const std::vector<int64_t>& sizes, const std::vector<int64_t>& order);

// Where the values of the other blob lie in this one; nothing unless each lies there once.
std::optional<Strided> inverse(const Strided& strided);

// Matrices in a blob: the place of value (i, r, c) is the offset plus the steps of three walks.
struct Matrices {
    int64_t offset = 0;
    float factor = 1;
    Walk batch, rows, columns;

    // Plain rows.
    static Matrices plain(int64_t batches, int64_t rows, int64_t columns);
    // The same matrices in the blob from which this one's values come; nothing if their rows or
    // columns are not evenly spaced there.
    std::optional<Matrices> behind(const Strided& made) const;
    int64_t row_step() const { return rows.empty() ? 0 : rows[0].step; }
    int64_t column_step() const { return columns.empty() ? 0 : columns[0].step; }
    // The place of the first value of each matrix.
    std::vector<int64_t> places() const;
    bool operator==(const Matrices& other) const {
        return offset == other.offset && factor == other.factor && batch == other.batch &&
               rows == other.rows && columns == other.columns;
    }
};

}  // namespace sn
