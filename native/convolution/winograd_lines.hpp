// Winograd's transforms.  Included once for each instruction set (winograd_blocks.hpp).
//
// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015): F(4 x 4, 3 x 3), and
// F(2 x 2, 5 x 5), from the polynomial's values at 0, a, -a, b, -b and infinity.  With 1 and 2 for
// a and b, as in the paper, the error is four times that of a direct sum; with 5/8 and 3/2 it is
// less than twice (docs/decisions/0010).
#pragma once

#include <cstring>

#include "winograd_loops.hpp"

namespace sn {
namespace {

using winograd::reach;

#if defined(__AVX512F__)
constexpr int lanes = 16;
#else
constexpr int lanes = 8;
#endif
typedef float Floats __attribute__((vector_size(lanes * sizeof(float))));
typedef int Lanes __attribute__((vector_size(lanes * sizeof(int))));
typedef float Unaligned
    __attribute__((vector_size(lanes * sizeof(float)), aligned(sizeof(float)), may_alias));

#define SN_ALWAYS inline __attribute__((always_inline))

SN_ALWAYS Floats load(const float* from) {
    return *reinterpret_cast<const Unaligned*>(from);
}
SN_ALWAYS void store(float* to, Floats x) {
    *reinterpret_cast<Unaligned*>(to) = x;
}

typedef uint32_t Words __attribute__((vector_size(lanes * sizeof(uint32_t))));
typedef uint16_t Halves __attribute__((vector_size(lanes * sizeof(uint16_t))));

SN_ALWAYS Floats load(const BFloat16* from) {
    Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    return reinterpret_cast<Floats>(__builtin_convertvector(halves, Words) << 16);
}
// Rounds as BFloat16 does.
SN_ALWAYS void store(BFloat16* to, Floats x) {
    const auto whole = reinterpret_cast<Words>(x);
    const Words rounded = whole + 0x7fffU + ((whole >> 16) & 1U);
    const Words kept = (whole & 0x7fffffffU) > 0x7f800000U ? whole | 0x400000U : rounded;
    const auto halves = __builtin_convertvector(kept >> 16, Halves);
    std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
}

constexpr float a = 0.625F, b = 1.5F;
constexpr float aa = a * a, bb = b * b;
// One over the product of a point's distances from the others.
constexpr float at_0 = 1 / (aa * bb), at_a = 1 / (2 * aa * (aa - bb)),
                at_b = 1 / (2 * bb * (bb - aa));

// One axis of each transform; values lie `n` apart.
struct ImageLine {
    static constexpr int from = reach, to = reach;
    static SN_ALWAYS void run(const Floats* x, int n, Floats* y, int m) {
        const Floats even_a = x[4 * n] - bb * x[2 * n], odd_a = x[3 * n] - bb * x[n];
        const Floats even_b = x[4 * n] - aa * x[2 * n], odd_b = x[3 * n] - aa * x[n];
        y[0] = x[4 * n] - (aa + bb) * x[2 * n] + aa * bb * x[0];
        y[m] = even_a + a * odd_a;
        y[2 * m] = even_a - a * odd_a;
        y[3 * m] = even_b + b * odd_b;
        y[4 * m] = even_b - b * odd_b;
        y[5 * m] = x[5 * n] - (aa + bb) * x[3 * n] + aa * bb * x[n];
    }
};

struct SpreadLine {
    static constexpr int from = reach, to = reach;
    static SN_ALWAYS void run(const Floats* x, int n, Floats* y, int m) {
        const Floats even_a = x[n] + x[2 * n], odd_a = x[n] - x[2 * n];
        const Floats even_b = x[3 * n] + x[4 * n], odd_b = x[3 * n] - x[4 * n];
        y[0] = aa * bb * x[0];
        y[m] = aa * bb * x[5 * n] - (a * bb) * odd_a - (b * aa) * odd_b;
        y[2 * m] = -(aa + bb) * x[0] - bb * even_a - aa * even_b;
        y[3 * m] = a * odd_a + b * odd_b - (aa + bb) * x[5 * n];
        y[4 * m] = x[0] + even_a + even_b;
        y[5 * m] = x[5 * n];
    }
};

struct SlopeLine3 {
    static constexpr int from = 4, to = reach;
    static SN_ALWAYS void run(const Floats* x, int n, Floats* y, int m) {
        const Floats even_a = x[0] + aa * x[2 * n], odd_a = a * (x[n] + aa * x[3 * n]);
        const Floats even_b = x[0] + bb * x[2 * n], odd_b = b * (x[n] + bb * x[3 * n]);
        y[0] = x[0];
        y[m] = even_a + odd_a;
        y[2 * m] = even_a - odd_a;
        y[3 * m] = even_b + odd_b;
        y[4 * m] = even_b - odd_b;
        y[5 * m] = x[3 * n];
    }
};

struct WeightLine3 {
    static constexpr int from = 3, to = reach;
    static SN_ALWAYS void run(const Floats* x, int n, Floats* y, int m) {
        const Floats even_a = at_a * x[0] + (at_a * aa) * x[2 * n], odd_a = (at_a * a) * x[n];
        const Floats even_b = at_b * x[0] + (at_b * bb) * x[2 * n], odd_b = (at_b * b) * x[n];
        y[0] = at_0 * x[0];
        y[m] = even_a + odd_a;
        y[2 * m] = even_a - odd_a;
        y[3 * m] = even_b + odd_b;
        y[4 * m] = even_b - odd_b;
        y[5 * m] = x[2 * n];
    }
};

struct ResultLine3 {
    static constexpr int from = reach, to = 4;
    static SN_ALWAYS void run(const Floats* x, int n, Floats* y, int m) {
        const Floats even_a = x[n] + x[2 * n], odd_a = x[n] - x[2 * n];
        const Floats even_b = x[3 * n] + x[4 * n], odd_b = x[3 * n] - x[4 * n];
        y[0] = x[0] + even_a + even_b;
        y[m] = a * odd_a + b * odd_b;
        y[2 * m] = aa * even_a + bb * even_b;
        y[3 * m] = x[5 * n] + (aa * a) * odd_a + (bb * b) * odd_b;
    }
};

struct GradientLine3 {
    static constexpr int from = reach, to = 3;
    static SN_ALWAYS void run(const Floats* x, int n, Floats* y, int m) {
        const Floats even_a = at_a * (x[n] + x[2 * n]), odd_a = at_a * (x[n] - x[2 * n]);
        const Floats even_b = at_b * (x[3 * n] + x[4 * n]), odd_b = at_b * (x[3 * n] - x[4 * n]);
        y[0] = at_0 * x[0] + even_a + even_b;
        y[m] = a * odd_a + b * odd_b;
        y[2 * m] = x[5 * n] + aa * even_a + bb * even_b;
    }
};

// The same points serve two outputs of five taps.
struct SlopeLine5 {
    static constexpr int from = 2, to = reach;
    static SN_ALWAYS void run(const Floats* x, int n, Floats* y, int m) {
        y[0] = x[0];
        y[m] = x[0] + a * x[n];
        y[2 * m] = x[0] - a * x[n];
        y[3 * m] = x[0] + b * x[n];
        y[4 * m] = x[0] - b * x[n];
        y[5 * m] = x[n];
    }
};

struct WeightLine5 {
    static constexpr int from = 5, to = reach;
    static SN_ALWAYS void run(const Floats* x, int n, Floats* y, int m) {
        const Floats even_a = at_a * x[0] + (at_a * aa) * x[2 * n] + (at_a * aa * aa) * x[4 * n];
        const Floats even_b = at_b * x[0] + (at_b * bb) * x[2 * n] + (at_b * bb * bb) * x[4 * n];
        const Floats odd_a = (at_a * a) * x[n] + (at_a * aa * a) * x[3 * n];
        const Floats odd_b = (at_b * b) * x[n] + (at_b * bb * b) * x[3 * n];
        y[0] = at_0 * x[0];
        y[m] = even_a + odd_a;
        y[2 * m] = even_a - odd_a;
        y[3 * m] = even_b + odd_b;
        y[4 * m] = even_b - odd_b;
        y[5 * m] = x[4 * n];
    }
};

struct ResultLine5 {
    static constexpr int from = reach, to = 2;
    static SN_ALWAYS void run(const Floats* x, int n, Floats* y, int m) {
        y[0] = x[0] + (x[n] + x[2 * n]) + (x[3 * n] + x[4 * n]);
        y[m] = x[5 * n] + a * (x[n] - x[2 * n]) + b * (x[3 * n] - x[4 * n]);
    }
};

struct GradientLine5 {
    static constexpr int from = reach, to = 5;
    static SN_ALWAYS void run(const Floats* x, int n, Floats* y, int m) {
        const Floats even_a = at_a * (x[n] + x[2 * n]), odd_a = at_a * (x[n] - x[2 * n]);
        const Floats even_b = at_b * (x[3 * n] + x[4 * n]), odd_b = at_b * (x[3 * n] - x[4 * n]);
        y[0] = at_0 * x[0] + even_a + even_b;
        y[m] = a * odd_a + b * odd_b;
        y[2 * m] = aa * even_a + bb * even_b;
        y[3 * m] = (aa * a) * odd_a + (bb * b) * odd_b;
        y[4 * m] = x[5 * n] + (aa * aa) * even_a + (bb * bb) * even_b;
    }
};

// Both axes, for one vector of channels: `in(i)` gives value i of the square, `out(i, y)` takes
// value i of the result.
template <class Line, class In, class Out>
SN_ALWAYS void transform(In in, Out out) {
    Floats half[Line::to * Line::from], line[reach];
#pragma GCC unroll 6
    for (int i = 0; i < Line::from; ++i) {
#pragma GCC unroll 6
        for (int j = 0; j < Line::from; ++j) line[j] = in(j * Line::from + i);
        Line::run(line, 1, half + i, Line::from);
    }
#pragma GCC unroll 6
    for (int i = 0; i < Line::to; ++i) {
        Line::run(half + i * Line::from, 1, line, 1);
#pragma GCC unroll 6
        for (int j = 0; j < Line::to; ++j) out(i * Line::to + j, line[j]);
    }
}

// body(c, done) for each vector of channels, from channel c on.  The last one begins early where
// the channels fill no whole vector: its first `done` lanes have been handled before.
template <class F>
SN_ALWAYS void vectors(int64_t channels, F body) {
    for (int64_t next = 0; next < channels; next += lanes) {
        const int64_t c = next + lanes <= channels ? next : channels - lanes;
        body(c, static_cast<int>(next - c));
    }
}

template <class Line, class T>
void gather(const T* const* from, float* to, int64_t step, int64_t channels) {
    vectors(channels, [=](int64_t c, int) __attribute__((always_inline)) {
        transform<Line>([=](int i) __attribute__((always_inline)) { return load(from[i] + c); },
                        [=](int i, Floats y)
                            __attribute__((always_inline)) { store(to + i * step + c, y); });
    });
}

template <class Line>
void convert(const float* from, int64_t from_step, float* to, int64_t to_step, int64_t channels) {
    vectors(channels, [=](int64_t c, int) __attribute__((always_inline)) {
        transform<Line>(
            [=](int i) __attribute__((always_inline)) { return load(from + i * from_step + c); },
            [=](int i, Floats y)
                __attribute__((always_inline)) { store(to + i * to_step + c, y); });
    });
}

// y where the lane's number is `done` or more, else x.
SN_ALWAYS Floats keep(Floats x, Floats y, int done) {
    Lanes numbers;
    for (int i = 0; i < lanes; ++i) numbers[i] = i;
    return numbers >= done ? y : x;
}

template <class Line, class T>
void scatter(const float* from, int64_t step, T* const* to, const float* bias, bool adds,
             float least, int64_t channels) {
    vectors(channels, [=](int64_t c, int done) __attribute__((always_inline)) {
        const Floats start = bias ? load(bias + c) : Floats{};
        const auto put = [=](int i, Floats y) __attribute__((always_inline)) {
            y += start;
            const Floats before = adds ? load(to[i] + c) : y;
            if (adds) y += before;
            y = y < least ? Floats{} + least : y;
            store(to[i] + c, adds && done ? keep(before, y, done) : y);
        };
        transform<Line>(
            [=](int i) __attribute__((always_inline)) { return load(from + i * step + c); }, put);
    });
}

}  // namespace
}  // namespace sn
