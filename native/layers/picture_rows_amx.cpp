// Rows of a window lie side by side in a line, and neighbouring windows lie a few bytes apart: a
// tile of AMX reads sixteen of them from the line as it is, so that no patches are copied.
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined registers of its own header for a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "picture_rows.hpp"
#include "tiles.hpp"

namespace sn {

namespace {
using Type = PictureJob::Type;
constexpr int64_t lanes = PictureJob::lanes;

// Tiles 0 to 3 are sums, 4 and 5 windows, 6 and 7 weights.
void configure(int64_t windows, int64_t bytes) {
    TileShapes shapes;
    for (int tile = 0; tile < 8; ++tile) {
        const bool reads = tile == 4 || tile == 5, weighs = tile > 5;
        shapes.bytes[tile] = static_cast<uint16_t>(reads ? bytes : PictureJob::row_bytes);
        shapes.rows[tile] = static_cast<uint8_t>(weighs ? bytes / 4 : windows);
    }
    _tile_loadconfig(&shapes);
}

inline __mmask16 first(int64_t count) {
    return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, lanes)) - 1U);
}

inline __m512i rounded(__m512 values, float inverse, Type type) {
    const float low = type == Type::u8 ? 0.0F : -128.0F, high = type == Type::u8 ? 255.0F : 127.0F;
    values = _mm512_mul_ps(values, _mm512_set1_ps(inverse));
    values = _mm512_max_ps(_mm512_set1_ps(low), _mm512_min_ps(_mm512_set1_ps(high), values));
    return _mm512_cvtps_epi32(values);
}

inline __m256i narrow(__m512 values) {
    const __m256bh rounded = _mm512_cvtneps_pbh(values);
    __m256i words;
    __builtin_memcpy(&words, &rounded, sizeof words);
    return words;
}

// Where the channels of sixteen pixels come to lie side by side: four bytes each in eight bits, and
// in bfloat16 the words of one channel behind those of another.
struct Order {
    explicit Order(int64_t channels) {
        alignas(64) uint8_t at[64];
        alignas(64) uint16_t word[64];
        for (int64_t i = 0; i < 64; ++i) {
            const int64_t pixel = i / channels % lanes, channel = i % channels;
            at[i] = static_cast<uint8_t>(4 * pixel + channel);
            word[i] = static_cast<uint16_t>(channel * lanes + pixel);
        }
        bytes = _mm512_load_si512(at);
        words[0] = _mm512_load_si512(word), words[1] = _mm512_load_si512(word + 32);
    }
    __m512i bytes, words[2];
};

inline uint64_t bits(int64_t count) {
    return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << std::max<int64_t>(count, 0)) - 1;
}

// Sixteen pixels or, by the mask, fewer.
void store_bytes(const PictureJob& job, const Order& order, const float* from, int64_t plane,
                 __mmask16 mask, int64_t count, uint8_t* to) {
    __m512i all = _mm512_setzero_si512();
    for (int64_t c = 0; c < job.channels; ++c) {
        const __m512 values = _mm512_maskz_loadu_ps(mask, from + c * plane);
        const __m512i one =
            _mm512_and_si512(rounded(values, job.inverse, job.factors), _mm512_set1_epi32(255));
        all = _mm512_or_si512(all,
                              _mm512_sllv_epi32(one, _mm512_set1_epi32(8 * static_cast<int>(c))));
    }
    _mm512_mask_storeu_epi8(to, bits(count), _mm512_permutexvar_epi8(order.bytes, all));
}

void store_words(const PictureJob& job, const Order& order, const float* from, int64_t plane,
                 __mmask16 mask, int64_t count, uint8_t* to) {
    __m256i channels[PictureJob::most_channels] = {};
    for (int64_t c = 0; c < job.channels; ++c)
        channels[c] = narrow(_mm512_maskz_loadu_ps(mask, from + c * plane));
    const auto both = [&](int c) {
        return _mm512_inserti64x4(_mm512_castsi256_si512(channels[c]), channels[c + 1], 1);
    };
    const __m512i low = both(0), high = both(2);
    for (int half = 0; half < 2; ++half) {
        const int64_t rest = count - 32 * half;
        if (rest <= 0) break;
        const auto kept = static_cast<__mmask32>(bits(std::min<int64_t>(rest, 32)));
        _mm512_mask_storeu_epi16(to + 64 * half, kept,
                                 _mm512_permutex2var_epi16(low, order.words[half], high));
    }
}

// One row of the input, with the padding beside it.
void fill_line(const PictureJob& job, const Order& order, const float* row, uint8_t* line) {
    const int64_t plane = job.height * job.width, pixel = job.channels * job.number_bytes();
    const auto store = job.factors == Type::bf16 ? store_words : store_bytes;
    const int64_t reach = (job.columns - 1) * job.stride_x + job.kernel_columns;
    const int64_t wide = std::clamp<int64_t>(reach - job.pad_x, 0, job.width);
    const int64_t left = std::min(job.pad_x, reach) * pixel, right = left + wide * pixel;
    std::memset(line, 0, static_cast<size_t>(left));
    std::memset(line + right, 0, static_cast<size_t>(job.line_bytes - right));
    for (int64_t x = 0; x < wide; x += lanes) {
        const __mmask16 mask = first(wide - x);
        const int64_t count = std::min(lanes, wide - x) * job.channels;
        store(job, order, row + x, plane, mask, count, line + left + x * pixel);
    }
}

void fill_lines(const PictureJob& job, const Order& order, const float* image, int64_t row,
                int64_t count, uint8_t* lines) {
    for (int64_t i = 0; i < count; ++i) {
        uint8_t* line = lines + i * job.line_bytes;
        if (row + i < 0 || row + i >= job.height)
            std::memset(line, 0, static_cast<size_t>(job.line_bytes));
        else
            fill_line(job, order, image + (row + i) * job.width, line);
    }
    SN_FINISH_STORES();
}

template <Type type>
inline void store(const PictureJob& job, __m512 values, int64_t at, __mmask16 mask) {
    if constexpr (type == Type::f32)
        _mm512_mask_storeu_ps(static_cast<float*>(job.to) + at, mask, values);
    else if constexpr (type == Type::bf16)
        _mm256_mask_storeu_epi16(static_cast<uint16_t*>(job.to) + at, mask, narrow(values));
    else if constexpr (type == Type::s8)
        _mm512_mask_cvtsepi32_storeu_epi8(static_cast<int8_t*>(job.to) + at, mask,
                                          rounded(values, job.inverse_out, type));
    else
        _mm512_mask_cvtusepi32_storeu_epi8(static_cast<uint8_t*>(job.to) + at, mask,
                                           rounded(values, job.inverse_out, type));
}

// Sixteen outputs of some windows: from their sums to what is stored.
template <Type factors, Type type>
void give(const PictureJob& job, const int32_t* sums, int64_t windows, int64_t at, int64_t output) {
    const __m512 factor = _mm512_loadu_ps(job.factor + output);
    const __m512 bias = _mm512_loadu_ps(job.bias + output), least = _mm512_set1_ps(job.least);
    const __mmask16 mask = first(job.outputs - output);
    for (int64_t w = 0; w < windows; ++w) {
        const __m512i sum = _mm512_load_si512(sums + w * lanes);
        const __m512 values = factors == Type::bf16
                                  ? _mm512_add_ps(_mm512_castsi512_ps(sum), bias)
                                  : _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), factor, bias);
        store<type>(job, _mm512_max_ps(least, values), at + w * job.outputs + output, mask);
    }
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

template <Type factors, Type type>
void give_row(const PictureJob& job, const uint8_t* line, int64_t at) {
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
                give<factors, type>(job, sums + tile * lanes * lanes, windows,
                                    at + (lower ? b : a) * job.outputs,
                                    output + (right ? lanes : 0));
            }
        }
    }
}

using Row = void (*)(const PictureJob& job, const uint8_t* line, int64_t at);

template <Type factors>
Row row_of(Type type) {
    switch (type) {
        case Type::s8:
            return give_row<factors, Type::s8>;
        case Type::u8:
            return give_row<factors, Type::u8>;
        case Type::bf16:
            return give_row<factors, Type::bf16>;
        default:
            return give_row<factors, Type::f32>;
    }
}

Row row_of(const PictureJob& job) {
    switch (job.factors) {
        case Type::s8:
            return row_of<Type::s8>(job.type);
        case Type::u8:
            return row_of<Type::u8>(job.type);
        default:
            return row_of<Type::bf16>(job.type);
    }
}
}  // namespace

void picture_rows(const PictureJob& job, void* lines, int64_t begin, int64_t end) {
    const Row give_one = row_of(job);
    const Order order(job.channels);
    auto* bytes = static_cast<uint8_t*>(lines);
    configure(std::min(lanes, job.columns), job.window_bytes());
    for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / job.blocks, y = i % job.blocks * job.block_rows;
        const int64_t count = std::min(job.block_rows, job.rows - y);
        fill_lines(job, order, job.images + image * job.channels * job.height * job.width,
                   y * job.stride_y - job.pad_y, job.input_rows(count), bytes);
        for (int64_t r = 0; r < count; ++r)
            give_one(job, bytes + r * job.stride_y * job.line_bytes,
                     (image * job.rows + y + r) * job.columns * job.outputs);
    }
    _tile_release();
}

}  // namespace sn
