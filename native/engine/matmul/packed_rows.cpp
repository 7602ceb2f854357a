#include "packed_rows.hpp"

#include <algorithm>
#include <iterator>

#include "../instructions.hpp"
#include "../lanes.hpp"
#include "../parallel.hpp"

namespace sn {

namespace {
// Vectors whose sums stay in registers, of which AVX2 has half as many.
template <class Vector>
constexpr int64_t columns_at_once(int64_t rows) {
    if constexpr (sizeof(Vector) == sizeof(Lanes)) return rows <= 4 ? 4 : 2;
    return rows <= 1 ? 8 : rows <= 3 ? 4 : rows <= 6 ? 2 : 1;
}

// `width` vectors of neighbouring columns, from `first` on.
template <class Vector, int64_t rows, int64_t width>
SN_INLINE void multiply_columns(const PackedRows& of, const float* a, const float* matrix, float* c,
                                int64_t first) {
    constexpr int64_t lanes = sizeof(Vector) / sizeof(float);
    Vector sums[rows][width] = {};
    for (int64_t k = 0; k < of.depth; ++k, matrix += PackedRows::block) {
        Vector factors[width];
        for (int64_t i = 0; i < width; ++i) factors[i] = lanes_of<Vector>(matrix + i * lanes);
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t i = 0; i < width; ++i) sums[r][i] += a[r * of.depth + k] * factors[i];
    }
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < width; ++i) {
            const int64_t begin = first + i * lanes, count = of.columns - begin;
            float* to = c + r * of.columns + begin;
            if (count >= lanes)
                put(of.adds ? lanes_of<Vector>(to) + sums[r][i] : sums[r][i], to);
            else
                for (int64_t k = 0; k < count; ++k)
                    to[k] = of.adds ? to[k] + sums[r][i][k] : sums[r][i][k];
        }
}

template <class Vector, int64_t rows>
void multiply(const PackedRows& of, const float* a, const float* matrix, float* c) {
    constexpr int64_t block = PackedRows::block, depths = PackedRows::depths;
    constexpr int64_t lanes = sizeof(Vector) / sizeof(float);
    constexpr int64_t width = columns_at_once<Vector>(rows), blocks = block / lanes / width;
    const int64_t size = (of.depth + depths - 1) / depths * depths * block;
    parallel_each((of.columns + block - 1) / block, block * of.depth * rows / 4,
                  [=](int64_t b) __attribute__((always_inline)) {
                      for (int64_t part = 0; part < blocks; ++part) {
                          const int64_t first = part * width * lanes;
                          multiply_columns<Vector, rows, width>(of, a, matrix + b * size + first, c,
                                                                b * block + first);
                      }
                  });
}

template <class V>
constexpr decltype(&multiply<V, 1>) loops[] = {multiply<V, 1>, multiply<V, 2>, multiply<V, 3>,
                                               multiply<V, 4>, multiply<V, 5>, multiply<V, 6>,
                                               multiply<V, 7>, multiply<V, 8>};
static_assert(std::size(loops<Lanes>) == PackedRows::most_rows);
}  // namespace

void PackedRows::run(const float* a, const float* matrix, float* c) const {
    (has_avx512() ? loops<Lanes> : loops<HalfLanes>)[rows - 1](*this, a, matrix, c);
}

}  // namespace sn
