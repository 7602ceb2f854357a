// Rows of a window lie side by side in a line, and neighbouring windows lie a few bytes apart: a
// tile of AMX reads sixteen of them from the line as it is, so that no patches are copied.
#include "picture_loops.hpp"
#include "tiles.hpp"

namespace sn {

namespace {
// Tiles 0 to 3 are sums, 4 and 5 windows, 6 and 7 weights.
void configure(int64_t windows, int64_t bytes) {
    TileShapes shapes;
    for (int tile = 0; tile < 8; ++tile) {
        const bool reads = tile == 4 || tile == 5, weighs = tile > 5;
        shapes.bytes[tile] = static_cast<uint16_t>(reads ? bytes : PictureJob::row_bytes);
        shapes.rows[tile] = static_cast<uint8_t>(weighs ? bytes / 4 : windows);
    }
    shapes.load();
}

#define SN_MULTIPLY(sum, windows, weights)         \
    do {                                           \
        if constexpr (factors == Type::bf16)       \
            _tile_dpbf16ps(sum, windows, weights); \
        else if constexpr (factors == Type::s8)    \
            _tile_dpbssd(sum, windows, weights);   \
        else                                       \
            _tile_dpbusd(sum, windows, weights);   \
    } while (false)

// Up to twice sixteen outputs of two times sixteen windows, which begin at two places of lines.
template <Type factors, bool two, bool wide>
void multiply(const PictureJob& job, const uint8_t* line, int64_t a, int64_t b,
              const uint8_t* weights, int64_t panel, int32_t* sums) {
    const int64_t bytes = job.window_bytes(), step = job.dilation_y * job.line_bytes;
    const int64_t apart = job.stride_x * job.channels * job.number_bytes();
    _tile_zero(0);
    if constexpr (wide) _tile_zero(1);
    if constexpr (two) _tile_zero(2);
    if constexpr (two && wide) _tile_zero(3);
    for (int64_t r = 0; r < job.kernel_rows; ++r) {
        const uint8_t* tile = weights + r * bytes * lanes;
        _tile_loadd(4, line + r * step + a * apart, apart);
        _tile_loadd(6, tile, PictureJob::row_bytes);
        SN_MULTIPLY(0, 4, 6);
        if constexpr (wide) {
            _tile_loadd(7, tile + panel, PictureJob::row_bytes);
            SN_MULTIPLY(1, 4, 7);
        }
        if constexpr (two) {
            _tile_loadd(5, line + r * step + b * apart, apart);
            SN_MULTIPLY(2, 5, 6);
        }
        if constexpr (two && wide) SN_MULTIPLY(3, 5, 7);
    }
    _tile_stored(0, sums, PictureJob::row_bytes);
    if constexpr (wide) _tile_stored(1, sums + lanes * lanes, PictureJob::row_bytes);
    if constexpr (two) _tile_stored(2, sums + 2 * lanes * lanes, PictureJob::row_bytes);
    if constexpr (two && wide) _tile_stored(3, sums + 3 * lanes * lanes, PictureJob::row_bytes);
}

struct Tiles {
    template <Type factors, Type type>
    static void give(const PictureJob& job, const uint8_t* line, int64_t at) {
        SN_FINISH_STORES();
        alignas(64) int32_t sums[4 * lanes * lanes];
        const int64_t panel = job.kernel_rows * job.window_bytes() * lanes;
        const int64_t windows = std::min(lanes, job.columns), last = job.columns - windows;
        const auto* weights = static_cast<const uint8_t*>(job.weights);
        for (int64_t output = 0; output < job.outputs; output += 2 * lanes) {
            const bool wide = output + lanes < job.outputs;
            const uint8_t* tiles = weights + output / lanes * panel;
            for (int64_t x = 0; x < job.columns; x += 2 * lanes) {
                // The last windows are computed twice rather than a few of them alone.
                const int64_t a = std::min(x, last), b = std::min(x + lanes, last);
                const bool two = x + lanes < job.columns;
                const auto run =
                    two ? (wide ? multiply<factors, true, true> : multiply<factors, true, false>)
                        : (wide ? multiply<factors, false, true> : multiply<factors, false, false>);
                run(job, line, a, b, tiles, panel, sums);
                for (int64_t tile = 0; tile < 4; ++tile) {
                    const bool right = tile % 2 > 0, lower = tile > 1;
                    if ((right && !wide) || (lower && !two)) continue;
                    sn::give<factors, type>(job, sums + tile * lanes * lanes, windows,
                                            at + (lower ? b : a) * job.outputs,
                                            output + (right ? lanes : 0));
                }
            }
        }
    }
};
}  // namespace

void picture_rows_amx(const PictureJob& job, void* lines, int64_t begin, int64_t end) {
    configure(std::min(lanes, job.columns), job.window_bytes());
    give_blocks<Tiles>(job, lines, begin, end);
    _tile_release();
}

}  // namespace sn
