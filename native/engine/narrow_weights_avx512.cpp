#include "narrow_weights.hpp"
#include "turn.hpp"

namespace sn {

namespace {
constexpr int64_t step = NarrowWeights::step, lanes = step / 2, most = NarrowWeights::most_taps;

inline __m512i narrow(__m512 first, __m512 second) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

// The weights of 32 inputs, tap by tap.
inline void read(const float* from, int64_t taps, __m512i* to, int64_t apart) {
    if (taps == 1) {
        *to = narrow(_mm512_loadu_ps(from), _mm512_loadu_ps(from + lanes));
        return;
    }
    const auto mask = static_cast<__mmask16>((1U << taps) - 1U);
    __m512i x[2][most];
    for (int64_t half = 0; half < 2; ++half) {
        for (int64_t i = 0; i < lanes; ++i)
            x[half][i] = _mm512_maskz_loadu_epi32(mask, from + (half * lanes + i) * taps);
        turn(x[half]);
    }
    for (int64_t tap = 0; tap < taps; ++tap)
        to[tap * apart] = narrow(_mm512_castsi512_ps(x[0][tap]), _mm512_castsi512_ps(x[1][tap]));
}

// Sixteen outputs, pairs of inputs.
void pair_inputs(const NarrowWeights& w, const float* from, uint16_t* to, int64_t number) {
    const int64_t output = number * lanes, row = w.inputs * w.taps;
    from += output * row;
    to += output / w.lanes * w.output_step + output % w.lanes * 2;
    __m512i x[most][lanes];
    for (int64_t i = 0; i < w.inputs; i += step) {
        for (int64_t o = 0; o < lanes; ++o)
            read(from + o * row + i * w.taps, w.taps, &x[0][o], lanes);
        for (int64_t tap = 0; tap < w.taps; ++tap) {
            turn(x[tap]);
            uint16_t* block = to + i / step * w.input_step + tap * w.tap_step;
            for (int64_t pair = 0; pair < lanes; ++pair)
                _mm512_storeu_si512(block + pair * w.lanes * 2, x[tap][pair]);
        }
    }
}

// 32 outputs in pairs, lanes of inputs.
void pair_outputs(const NarrowWeights& w, const float* from, uint16_t* to, int64_t number) {
    const int64_t row = w.inputs * w.taps;
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    from += number * step * row, to += number * w.output_step;
    for (int64_t i = 0; i < w.inputs; i += step) {
        uint16_t* block = to + i / w.lanes * w.input_step + i % w.lanes * 2;
        for (int64_t pair = 0; pair < lanes; ++pair) {
            __m512i a[most], b[most];
            read(from + 2 * pair * row + i * w.taps, w.taps, a, 1);
            read(from + (2 * pair + 1) * row + i * w.taps, w.taps, b, 1);
            for (int64_t tap = 0; tap < w.taps; ++tap) {
                const __m512i first = _mm512_permutexvar_epi64(order, a[tap]);
                const __m512i second = _mm512_permutexvar_epi64(order, b[tap]);
                uint16_t* at = block + tap * w.tap_step + pair * w.lanes * 2;
                _mm512_storeu_si512(at, _mm512_unpacklo_epi16(first, second));
                _mm512_storeu_si512(at + step, _mm512_unpackhi_epi16(first, second));
            }
        }
    }
}
}  // namespace

void narrow_rows(const NarrowWeights& weights, const float* from, uint16_t* to, int64_t begin,
                 int64_t end) {
    for (int64_t number = begin; number < end; ++number)
        if (weights.pairs_inputs)
            pair_inputs(weights, from, to, number);
        else
            pair_outputs(weights, from, to, number);
}

}  // namespace sn
