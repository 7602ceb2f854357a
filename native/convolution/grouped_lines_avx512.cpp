// A pixel is put down with the first channel of each group in front, then the second of each: these
// few numbers, repeated, are what sixteen outputs take.
#include "endings_avx512.hpp"
#include "grouped_lines.hpp"

namespace sn {

namespace {
constexpr int64_t lanes = PlaneWindow::lanes;
constexpr int most_side = 7;

// Channel `from` of each group, for all outputs of the groups.
template <int group>
[[gnu::always_inline]] inline __m512 repeated(const float* from) {
    if (group == 4) return _mm512_broadcast_f32x4(_mm_load_ps(from));
    if (group == 8) {
        double both;
        __builtin_memcpy(&both, from, sizeof both);
        return _mm512_castpd_ps(_mm512_set1_pd(both));
    }
    return _mm512_set1_ps(*from);
}

[[gnu::always_inline]] inline __m512 values(__mmask16 real, const float* from) {
    return _mm512_maskz_loadu_ps(real, from);
}

[[gnu::always_inline]] inline __m512 values(__mmask16 real, const uint16_t* from) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(real, from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
}

[[gnu::always_inline]] inline void keep(__mmask16 real, __m512 found, float* to) {
    _mm512_mask_storeu_ps(to, real, found);
}

[[gnu::always_inline]] inline void put(__mmask16 real, const float* from, __m512i order,
                                       float* to) {
    _mm512_store_ps(to, _mm512_permutexvar_ps(order, values(real, from)));
}

// One channel of each group.
[[gnu::always_inline]] inline __m512 add(__m512 sum, __m512 factor, __m512 value, const float*) {
    return _mm512_fmadd_ps(factor, value, sum);
}

#if defined(__AVX512BF16__)
[[gnu::always_inline]] inline void keep(__mmask16 real, __m512 found, uint16_t* to) {
    const __m256bh rounded = _mm512_cvtneps_pbh(found);
    __m256i words;
    __builtin_memcpy(&words, &rounded, sizeof words);
    _mm256_mask_storeu_epi16(to, real, words);
}

// Pairs of neighbours in the order of single channels of groups half as large.
[[gnu::always_inline]] inline void put(__mmask16 real, const uint16_t* from, __m512i order,
                                       float* to) {
    const __m256i words = _mm256_maskz_loadu_epi16(real, from);
    _mm256_store_si256(reinterpret_cast<__m256i*>(to),
                       _mm256_permutexvar_epi32(_mm512_castsi512_si256(order), words));
}

// Two channels of each group.
[[gnu::always_inline]] inline __m512 add(__m512 sum, __m512 factor, __m512 value, const uint16_t*) {
    __m512bh left, right;
    __builtin_memcpy(&left, &factor, sizeof left);
    __builtin_memcpy(&right, &value, sizeof right);
    return _mm512_dpbf16_ps(sum, left, right);
}
#endif

// What the pixels of a block have in common.
struct Block {
    const float* weights;
    __m512 bias;
    // The order in which pixels are put down, that of sums, and that of memory.
    __m512i put, order, back;
    __mmask16 real;
};

template <int group, int pixels, class T>
void sum_row(const GroupedPlane& job, const float* const (&lines)[most_side], const Block& block,
             T* to) {
    const int64_t step = job.stride_x * lanes, apart = job.dilation_x * lanes;
    for (int64_t x = 0; x < job.columns; x += pixels) {
        __m512 sums[pixels];
#pragma GCC unroll 16
        for (int u = 0; u < pixels; ++u) sums[u] = block.bias;
        const float* factors = block.weights;
        for (int64_t i = 0; i < job.side; ++i)
            for (int64_t j = 0; j < job.side; ++j) {
                const float* from = lines[i] + x * step + j * apart;
                constexpr int steps = group * static_cast<int>(sizeof(T) / 2) / 2;
                for (int k = 0; k < steps; ++k, factors += lanes, from += lanes / group) {
                    const __m512 factor = _mm512_loadu_ps(factors);
#pragma GCC unroll 16
                    for (int u = 0; u < pixels; ++u)
                        sums[u] = add(sums[u], factor, repeated<group>(from + u * step), to);
                }
            }
        const auto left = static_cast<int>(std::min<int64_t>(pixels, job.columns - x));
        T* at = to + x * job.channels;
        if (job.adds) {
#pragma GCC unroll 16
            for (int u = 0; u < pixels; ++u)
                if (u < left) {
                    const __m512 old = values(block.real, at + u * job.channels);
                    sums[u] = _mm512_add_ps(sums[u], _mm512_permutexvar_ps(block.order, old));
                }
        }
        finish(job.end, sums);
#pragma GCC unroll 16
        for (int u = 0; u < pixels; ++u)
            if (u < left)
                keep(block.real, _mm512_permutexvar_ps(block.back, sums[u]), at + u * job.channels);
    }
}

template <int group, class T>
void sum_plane(const GroupedPlane& job, int64_t plane, int64_t begin, int64_t end, float* scratch) {
    const int64_t image = plane / job.blocks, number = plane % job.blocks, first = number * lanes;
    constexpr int64_t together = sizeof(float) / sizeof(T), groups = lanes / group;
    alignas(64) int32_t put_down[lanes] = {}, order[lanes], back[lanes];
    for (int64_t place = 0; place < lanes / together; ++place)
        put_down[place] =
            static_cast<int32_t>(place % groups * (group / together) + place / groups);
    for (int64_t place = 0; place < lanes; ++place) {
        const int64_t channel = job.channel(place);
        order[place] = static_cast<int32_t>(channel), back[channel] = static_cast<int32_t>(place);
    }
    const auto* weights = reinterpret_cast<const float*>(job.weights);
    const Block block{weights + number * job.side * job.side * group / together * lanes,
                      _mm512_loadu_ps(job.bias + first),
                      _mm512_load_si512(put_down),
                      _mm512_load_si512(order),
                      _mm512_load_si512(back),
                      static_cast<__mmask16>((1U << std::min(lanes, job.channels - first)) - 1U)};
    over_lines<most_side>(
        job, begin, end, scratch,
        [&](int64_t line, int64_t columns, float* to) {
            const T* from = static_cast<const T*>(job.images) +
                            (image * job.height + line) * job.width * job.channels + first;
            for (int64_t x = 0; x < columns; ++x, from += job.channels, to += lanes)
                put(block.real, from, block.put, to);
        },
        [&](int64_t row, const float* const(&lines)[most_side]) {
            T* to = static_cast<T*>(job.to) +
                    (image * job.rows + row) * job.columns * job.channels + first;
            if (job.together() == 14)
                sum_row<group, 14>(job, lines, block, to);
            else
                sum_row<group, 7>(job, lines, block, to);
        });
}
template <int group>
void sum_plane_of(const GroupedPlane& job, int64_t plane, int64_t begin, int64_t end,
                  float* scratch) {
#if defined(__AVX512BF16__)
    if (job.narrow) return sum_plane<group, uint16_t>(job, plane, begin, end, scratch);
#endif
    sum_plane<group, float>(job, plane, begin, end, scratch);
}
}  // namespace

void grouped_lines(const GroupedPlane& job, int64_t plane, int64_t begin, int64_t end,
                   float* scratch) {
    if (job.group == 4)
        sum_plane_of<4>(job, plane, begin, end, scratch);
    else if (job.group == 8)
        sum_plane_of<8>(job, plane, begin, end, scratch);
    else
        sum_plane_of<16>(job, plane, begin, end, scratch);
}

}  // namespace sn
