#include "packed_rows.hpp"

#include <algorithm>
#include <iterator>

#include "../lanes.hpp"
#include "../parallel.hpp"

namespace sn {

namespace {
// `width` vectors of neighbouring columns, from `first` on.
template <int64_t rows, int64_t width>
SN_INLINE void multiply_columns(const PackedRows& of, const float* a, const float* matrix, float* c,
                                int64_t first) {
    Lanes sums[rows][width] = {};
    for (int64_t k = 0; k < of.depth; ++k, matrix += PackedRows::block) {
        Lanes factors[width];
        for (int64_t i = 0; i < width; ++i) factors[i] = lanes_of(matrix + i * lanes);
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t i = 0; i < width; ++i) sums[r][i] += a[r * of.depth + k] * factors[i];
    }
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < width; ++i) {
            const int64_t begin = first + i * lanes, count = of.columns - begin;
            float* to = c + r * of.columns + begin;
            if (count >= lanes)
                put(of.adds ? lanes_of(to) + sums[r][i] : sums[r][i], to);
            else
                for (int64_t k = 0; k < count; ++k)
                    to[k] = of.adds ? to[k] + sums[r][i][k] : sums[r][i][k];
        }
}

template <int64_t rows>
void multiply(const PackedRows& of, const float* a, const float* matrix, float* c) {
    constexpr int64_t block = PackedRows::block, depths = PackedRows::depths;
    constexpr int64_t width = rows <= 4 ? 4 : 2, blocks = block / lanes / width;
    const int64_t size = (of.depth + depths - 1) / depths * depths * block;
    parallel((of.columns + block - 1) / block,
             [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
                 for (int64_t b = begin; b < end; ++b)
                     for (int64_t part = 0; part < blocks; ++part) {
                         const int64_t first = part * width * lanes;
                         multiply_columns<rows, width>(of, a, matrix + b * size + first, c,
                                                       b * block + first);
                     }
             },
             block * of.depth * rows / 4);
}
}  // namespace

void PackedRows::run(const float* a, const float* matrix, float* c) const {
    constexpr decltype(&multiply<1>) loops[] = {multiply<1>, multiply<2>, multiply<3>, multiply<4>,
                                                multiply<5>, multiply<6>, multiply<7>, multiply<8>};
    static_assert(std::size(loops) == most_rows);
    loops[rows - 1](*this, a, matrix, c);
}

}  // namespace sn
