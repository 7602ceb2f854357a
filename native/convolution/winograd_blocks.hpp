// Products of matrices in blocks of registers, and the table of all loops.  Included once for each
// instruction set, after a definition of SN_TABLE, the name of the table.
#include <utility>

#include "winograd_lines.hpp"

namespace sn {

#if defined(__AVX512F__)
// Of 32 registers: 28 sums, two vectors of B, one value of A.
constexpr int most_rows = 14;
#else
constexpr int most_rows = 6;
#endif
constexpr int columns = 2 * lanes;

namespace {
using Block = void (*)(const WinogradProduct& p, const float* from, const float* panel, float* to);

template <int rows, bool by_rows>
void block(const WinogradProduct& p, const float* from, const float* panel, float* to) {
    Floats sums[rows][2] = {};
    const int64_t row = by_rows ? p.a_row : 1, step = by_rows ? 1 : p.a_step;
    for (int64_t k = 0; k < p.depth; ++k, from += step, panel += p.b_step) {
        const Floats left = load(panel), right = load(panel + lanes);
#pragma GCC unroll 14
        for (int r = 0; r < rows; ++r) {
            const float value = from[r * row];
            sums[r][0] += value * left;
            sums[r][1] += value * right;
        }
    }
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r, to += p.c_row) {
        store(to, p.adds ? sums[r][0] + load(to) : sums[r][0]);
        store(to + lanes, p.adds ? sums[r][1] + load(to + lanes) : sums[r][1]);
    }
}

template <bool by_rows, class>
struct Blocks;
template <bool by_rows, int... rows>
struct Blocks<by_rows, std::integer_sequence<int, rows...>> {
    static constexpr Block of[] = {block<rows + 1, by_rows>...};
};

// Blocks of nearly the same number of rows: few rows leave the processor waiting for its sums.
template <bool by_rows>
void multiply(const WinogradProduct& p) {
    using All = Blocks<by_rows, std::make_integer_sequence<int, most_rows>>;
    const int64_t blocks = (p.rows + most_rows - 1) / most_rows;
    for (int64_t column = 0, j = 0; column < p.columns; column += columns, ++j)
        for (int64_t i = 0; i < blocks; ++i) {
            const int64_t begin = p.rows * i / blocks, end = p.rows * (i + 1) / blocks;
            All::of[end - begin - 1](p, p.a + begin * p.a_row, p.b + j * p.b_panel,
                                     p.c + begin * p.c_row + column);
        }
}

template <class Line>
constexpr WinogradGather gathers = {gather<Line, float>, gather<Line, BFloat16>};
template <class Line>
constexpr WinogradScatter scatters = {scatter<Line, float>, scatter<Line, BFloat16>};
}  // namespace

const WinogradLoops SN_TABLE = {
    most_rows,
    columns,
    {3, 4, gathers<SlopeLine3>, convert<WeightLine3>, scatters<ResultLine3>,
     convert<GradientLine3>},
    {5, 2, gathers<SlopeLine5>, convert<WeightLine5>, scatters<ResultLine5>,
     convert<GradientLine5>},
    gathers<ImageLine>,
    scatters<SpreadLine>,
    multiply<true>,
    multiply<false>,
};

}  // namespace sn
