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

// Rounds as BFloat16 does.
[[gnu::always_inline]] inline void keep(__mmask16 real, __m512 found, uint16_t* to) {
    const __m512i whole = _mm512_castps_si512(found), one = _mm512_set1_epi32(1);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(whole, 16), one);
    const __m512i up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __mmask16 none = _mm512_cmp_ps_mask(found, found, _CMP_UNORD_Q);
    const __m512i kept =
        _mm512_mask_or_epi32(_mm512_add_epi32(whole, up), none, whole, _mm512_set1_epi32(0x400000));
    _mm256_mask_storeu_epi16(to, real, _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
}

// What the pixels of a block have in common.
struct Block {
    const float* weights;
    __m512 bias;
    // The order of vectors, and that of memory.
    __m512i order, back;
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
                for (int k = 0; k < group; ++k, factors += lanes, from += lanes / group) {
                    const __m512 factor = _mm512_loadu_ps(factors);
#pragma GCC unroll 16
                    for (int u = 0; u < pixels; ++u)
                        sums[u] =
                            _mm512_fmadd_ps(factor, repeated<group>(from + u * step), sums[u]);
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
    alignas(64) int32_t order[lanes], back[lanes];
    for (int64_t place = 0; place < lanes; ++place) {
        const int64_t channel = job.channel(place);
        order[place] = static_cast<int32_t>(channel), back[channel] = static_cast<int32_t>(place);
    }
    const Block block{job.weights + number * job.side * job.side * group * lanes,
                      _mm512_loadu_ps(job.bias + first), _mm512_load_si512(order),
                      _mm512_load_si512(back),
                      static_cast<__mmask16>((1U << std::min(lanes, job.channels - first)) - 1U)};
    over_lines<most_side>(
        job, begin, end, scratch,
        [&](int64_t line, int64_t columns, float* to) {
            const T* from = static_cast<const T*>(job.images) +
                            (image * job.height + line) * job.width * job.channels + first;
            for (int64_t x = 0; x < columns; ++x, from += job.channels, to += lanes)
                _mm512_store_ps(to, _mm512_permutexvar_ps(block.order, values(block.real, from)));
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
    if (job.narrow)
        sum_plane<group, uint16_t>(job, plane, begin, end, scratch);
    else
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
