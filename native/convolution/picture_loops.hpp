// What the kernels for pictures of several instruction sets have in common: lines of rounded
// numbers, and the way from sums to what is stored.  Included once for each of them.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined registers of its own header for a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "picture_rows.hpp"

namespace sn {
namespace {

using Type = PictureJob::Type;
constexpr int64_t lanes = PictureJob::lanes;

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
    all = _mm512_xor_si512(all, _mm512_set1_epi8(static_cast<char>(job.zero)));
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
    std::memset(line, job.zero, static_cast<size_t>(left));
    std::memset(line + right, job.zero, static_cast<size_t>(job.line_bytes - right));
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
            std::memset(line, job.zero, static_cast<size_t>(job.line_bytes));
        else
            fill_line(job, order, image + (row + i) * job.width, line);
    }
}

// Sixteen values, or as many as the mask says.  Masks slow a store down.
template <Type type, bool whole>
inline void store(const PictureJob& job, __m512 values, int64_t at, __mmask16 mask) {
    if constexpr (type == Type::f32) {
        float* to = static_cast<float*>(job.to) + at;
        whole ? _mm512_storeu_ps(to, values) : _mm512_mask_storeu_ps(to, mask, values);
    } else if constexpr (type == Type::bf16) {
        uint16_t* to = static_cast<uint16_t*>(job.to) + at;
        const __m256i words = narrow(values);
        whole ? _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), words)
              : _mm256_mask_storeu_epi16(to, mask, words);
    } else {
        uint8_t* to = static_cast<uint8_t*>(job.to) + at;
        const __m512i numbers = rounded(values, job.inverse_out, type);
        // Those with a sign fit already, and are the lowest bytes of longer ones.
        const __m128i bytes = _mm512_cvtepi32_epi8(numbers);
        whole ? _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes)
              : _mm_mask_storeu_epi8(to, mask, bytes);
    }
}

// Sixteen outputs of some windows: from their sums to what is stored.
template <Type factors, Type type, bool whole>
void give_all(const PictureJob& job, const int32_t* sums, int64_t windows, int64_t at,
              int64_t output) {
    const __m512 factor = _mm512_loadu_ps(job.factor + output);
    const __m512 bias = _mm512_loadu_ps(job.bias + output), least = _mm512_set1_ps(job.least);
    const __mmask16 mask = first(job.outputs - output);
    for (int64_t w = 0; w < windows; ++w) {
        const __m512i sum = _mm512_load_si512(sums + w * lanes);
        const __m512 values = factors == Type::bf16
                                  ? _mm512_add_ps(_mm512_castsi512_ps(sum), bias)
                                  : _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), factor, bias);
        store<type, whole>(job, _mm512_max_ps(least, values), at + w * job.outputs + output, mask);
    }
}

template <Type factors, Type type>
void give(const PictureJob& job, const int32_t* sums, int64_t windows, int64_t at, int64_t output) {
    const auto run = job.outputs - output >= lanes ? give_all<factors, type, true>
                                                   : give_all<factors, type, false>;
    run(job, sums, windows, at, output);
}

using Row = void (*)(const PictureJob& job, const uint8_t* line, int64_t at);

template <class Rows, Type factors>
Row row_of(Type type) {
    switch (type) {
        case Type::s8:
            return Rows::template give<factors, Type::s8>;
        case Type::u8:
            return Rows::template give<factors, Type::u8>;
        case Type::bf16:
            return Rows::template give<factors, Type::bf16>;
        default:
            return Rows::template give<factors, Type::f32>;
    }
}

template <class Rows>
Row row_of(const PictureJob& job) {
    switch (job.factors) {
        case Type::s8:
            return row_of<Rows, Type::s8>(job.type);
        case Type::u8:
            return row_of<Rows, Type::u8>(job.type);
        default:
            return row_of<Rows, Type::bf16>(job.type);
    }
}

// Rows::give<factors, type>(job, line, at) computes one row of outputs from the line that its
// windows begin in, and stores it from `at` on.
template <class Rows>
void give_blocks(const PictureJob& job, void* lines, int64_t begin, int64_t end) {
    const Row give_one = row_of<Rows>(job);
    const Order order(job.channels);
    auto* bytes = static_cast<uint8_t*>(lines);
    for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / job.blocks, y = i % job.blocks * job.block_rows;
        const int64_t count = std::min(job.block_rows, job.rows - y);
        fill_lines(job, order, job.images + image * job.channels * job.height * job.width,
                   y * job.stride_y - job.pad_y, job.input_rows(count), bytes);
        for (int64_t r = 0; r < count; ++r)
            give_one(job, bytes + r * job.stride_y * job.line_bytes,
                     (image * job.rows + y + r) * job.columns * job.outputs);
    }
}

}  // namespace
}  // namespace sn
