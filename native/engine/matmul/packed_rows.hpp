// Products of a few rows with one matrix that is packed for many of them (steps of recurrent nets).
#pragma once

#include <cstdint>

namespace sn {

struct PackedRows {
    // The largest number of rows for which this is the fastest way, from 1 on.
    static constexpr int64_t most_rows = 8;
    // The matrix lies in blocks of so many columns, filled up with zeros.  A block has whole rows,
    // their number filled up to a multiple of `depths`.
    static constexpr int64_t block = 64, depths = 16;

    int64_t rows, columns, depth;
    // Whether the product is added to C.
    bool adds;

    // C (rows × columns) = or += A (rows × depth) times the matrix (depth × columns).  The bits do
    // not depend on the number of threads.
    void run(const float* a, const float* matrix, float* c) const;
};

}  // namespace sn
