// Attention in eight bits: each row of Q and each key has a step of its own, and each column of V.
// K and V are rounded without their means over the keys: the same number for all scores of a row
// does not change its probabilities, which add up to 1.  Probabilities are 255ths of the largest.
#include "attention_vectors.hpp"

namespace sn {

namespace {
constexpr int64_t numbers = 4;
constexpr float most_steps = 127, base_two = 1.44269504F;

using Integers = int32_t __attribute__((vector_size(4 * lanes)));

struct Bytes {
    using Sums = Integers;
    [[gnu::always_inline]] static void add_product(Integers& sum, uint32_t a, Words b) {
        sum = reinterpret_cast<Integers>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum),
                                                             _mm512_set1_epi32(static_cast<int>(a)),
                                                             reinterpret_cast<__m512i>(b)));
    }
};

int64_t words(int64_t count) {
    return (count + numbers - 1) / numbers;
}

SN_ALWAYS Integers rounded(Floats values) {
    return reinterpret_cast<Integers>(_mm512_cvtps_epi32(reinterpret_cast<__m512>(values)));
}

SN_ALWAYS Floats floats_of(Integers values) {
    return reinterpret_cast<Floats>(_mm512_cvtepi32_ps(reinterpret_cast<__m512i>(values)));
}

SN_ALWAYS __mmask16 first_lanes(int64_t count) {
    return static_cast<__mmask16>(count < lanes ? (1U << count) - 1 : 0xffffU);
}

// The lowest byte of each value; of the last vector no more than `count`.
SN_ALWAYS void store_bytes(uint8_t* to, Integers values, int64_t count) {
    _mm512_mask_cvtepi32_storeu_epi8(to, first_lanes(count), reinterpret_cast<__m512i>(values));
}

// The next values of a row, `step` apart, of which `count` are left; behind them zeros.
SN_ALWAYS Floats next(const float* from, int64_t step, int64_t count) {
    if (step == 1) return reinterpret_cast<Floats>(_mm512_maskz_loadu_ps(first_lanes(count), from));
    Floats found = {};
    for (int64_t i = 0; i < std::min(lanes, count); ++i) found[i] = from[i * step];
    return found;
}

// The largest absolute values, and no numbers where there is one that is none.
SN_ALWAYS Words sizes(Words largest, Floats values) {
    const __m512i bits =
        _mm512_and_si512(reinterpret_cast<__m512i>(values), _mm512_set1_epi32(0x7fffffff));
    return reinterpret_cast<Words>(_mm512_max_epu32(reinterpret_cast<__m512i>(largest), bits));
}

SN_ALWAYS float largest_of(Words sizes) {
    const uint32_t found = _mm512_reduce_max_epu32(reinterpret_cast<__m512i>(sizes));
    float value;
    std::memcpy(&value, &found, sizeof value);
    return value;
}

// What values of at most this size are multiplied by.
SN_ALWAYS float inverse_step(float largest) {
    return largest > 1e-30F ? most_steps / largest : 0.0F;
}

// Of lanes of columns of a matrix the means, and the largest distances from them.
SN_ALWAYS void describe(const float* from, int64_t row, int64_t step, int64_t rows, int64_t count,
                        Floats& means, Floats& largest) {
    Floats sum = next(from, step, count), least = sum, most = sum;
    for (int64_t r = 1; r < rows; ++r) {
        const Floats values = next(from + r * row, step, count);
        sum += values, most = greater(most, values), least = -greater(-least, -values);
    }
    means = sum / static_cast<float>(rows);
    largest = greater(most - means, means - least);
}

// K in panels: word s of each key of a panel lies in a row.
void pack_keys(const AttentionJob& job) {
    const int64_t steps = words(job.depth), whole = (steps + lanes - 1) / lanes * lanes;
    const int64_t all = (job.columns + panel - 1) / panel * panel;
    const auto* k = static_cast<const float*>(job.k);
    for (int64_t d = 0; d < job.depth; d += lanes) {
        Floats means, largest;
        describe(k + d * job.k_step, job.k_row, job.k_step, job.columns, job.depth - d, means,
                 largest);
        store(job.room + d, means);
    }
    const auto values = [&](int64_t key, int64_t d) {
        return next(k + key * job.k_row + d * job.k_step, job.k_step, job.depth - d) -
               load<Floats>(job.room + d);
    };
    auto* rows = reinterpret_cast<Word*>(job.scores);
    std::fill_n(rows, lanes * whole, 0U);
    for (int64_t first = 0; first < all; first += lanes) {
        for (int64_t i = 0; i < lanes; ++i) {
            const int64_t key = first + i;
            job.key_steps[key] = 0, job.key_sums[key] = 0;
            if (key >= job.columns) continue;
            Words found = {};
            for (int64_t d = 0; d < job.depth; d += lanes) found = sizes(found, values(key, d));
            const float largest = largest_of(found), by = inverse_step(largest);
            auto* bytes = reinterpret_cast<uint8_t*>(rows + i * whole);
            Integers sum = {};
            for (int64_t d = 0; d < job.depth; d += lanes) {
                const Floats scaled = values(key, d) * by;
                // What is no number would make the sum overflow; its step says what it is.
                const Integers made = rounded(scaled) & (scaled == scaled);
                sum += made;
                store_bytes(bytes + d, made, lanes);
            }
            job.key_steps[key] = largest / most_steps;
            // What 128 more in each number of Q adds.
            job.key_sums[key] = -128 * _mm512_reduce_add_epi32(reinterpret_cast<__m512i>(sum));
        }
        Word* to = job.keys + first / panel * panel * steps + first % panel;
        Word rest[lanes * lanes];
        for (int64_t s = 0; s < steps; s += lanes) {
            turn(rows + s, whole, rest, lanes);
            for (int64_t i = 0; i < std::min(lanes, steps - s); ++i)
                store(to + (s + i) * panel, load<Words>(rest + i * lanes));
        }
    }
}

// V in panels: word s of a column has the values of four keys.
void pack_values(const AttentionJob& job) {
    const int64_t steps = words(job.columns);
    const int64_t wide = (job.width + panel - 1) / panel * panel;
    for (int64_t c = 0; c < wide; c += lanes) {
        Word* to = job.values + c / panel * panel * steps + c % panel;
        const float* from = static_cast<const float*>(job.v) + c * job.v_step;
        const int64_t here = std::max<int64_t>(job.width - c, 0);
        Floats means = {}, largest = {};
        if (here > 0) describe(from, job.v_row, job.v_step, job.columns, here, means, largest);
        store(job.value_means + c, means);
        store(job.value_steps + c, largest / most_steps);
        const Floats by = largest > 1e-30F ? most_steps / largest : Floats{};
        for (int64_t s = 0; s < steps; ++s, to += panel) {
            Words made = {};
            for (int64_t part = 0; part < numbers; ++part) {
                const int64_t key = s * numbers + part;
                if (key >= job.columns || here == 0) break;
                const Floats values = next(from + key * job.v_row, job.v_step, here) - means;
                const Integers number = rounded(values * by) & 255;
                made |= reinterpret_cast<Words>(number) << static_cast<uint32_t>(8 * part);
            }
            store(to, made);
        }
    }
}

void pack(const AttentionJob& job) {
    pack_keys(job);
    pack_values(job);
}

// Numbers of Q and 128; returns their step.
float pack_row(const float* from, int64_t step, int64_t count, Word* to) {
    Words found = {};
    for (int64_t i = 0; i < count; i += lanes)
        found = sizes(found, next(from + i * step, step, count - i));
    const float largest = largest_of(found), by = inverse_step(largest);
    for (int64_t i = 0; i < count; i += lanes)
        store_bytes(reinterpret_cast<uint8_t*>(to) + i,
                    rounded(next(from + i * step, step, count - i) * by) + 128,
                    words(count) * numbers - i);
    return largest / most_steps;
}

// 2 to the power of numbers of which none is large, to a ten thousandth.
SN_ALWAYS Floats power_of_two(Floats x) {
    constexpr int down = 9;
    const auto r = reinterpret_cast<Floats>(_mm512_reduce_ps(reinterpret_cast<__m512>(x), down));
    const Floats p = ((r * 0.07802451F + 0.22606725F) * r + 0.69583344F) * r + 0.99992526F;
    return reinterpret_cast<Floats>(
        _mm512_scalef_ps(reinterpret_cast<__m512>(p), reinterpret_cast<__m512>(x)));
}

// A row of scores to the base of two becomes probabilities as bytes; returns their sum.  Behind the
// row they become zero.
SN_ALWAYS float probabilities(float* scores, int64_t columns, int64_t all) {
    constexpr float none = -std::numeric_limits<float>::infinity(), largest_byte = 7.99435344F;
    for (int64_t i = columns; i < all; ++i) scores[i] = none;
    Floats most[2] = {load<Floats>(scores), load<Floats>(scores + lanes)};
    for (int64_t i = panel; i < all; i += panel)
        for (int k = 0; k < 2; ++k)
            most[k] = greater(most[k], load<Floats>(scores + i + k * lanes));
    const float shift =
        _mm512_reduce_max_ps(reinterpret_cast<__m512>(greater(most[0], most[1]))) - largest_byte;
    auto* bytes = reinterpret_cast<uint8_t*>(scores);
    Floats sums[2] = {};
    for (int64_t i = 0; i < all; i += panel) {
        Floats values[2];
        for (int k = 0; k < 2; ++k)
            values[k] = power_of_two(load<Floats>(scores + i + k * lanes) - shift);
        for (int k = 0; k < 2; ++k) {
            sums[k] += values[k];
            const __m128i made =
                _mm512_cvtusepi32_epi8(reinterpret_cast<__m512i>(rounded(values[k])));
            std::memcpy(bytes + i + k * lanes, &made, sizeof made);
        }
    }
    return _mm512_reduce_add_ps(reinterpret_cast<__m512>(sums[0] + sums[1]));
}

void run(const AttentionJob& job) {
    const int64_t depth = words(job.depth), steps = words(job.columns);
    const int64_t all = (job.columns + panel - 1) / panel * panel;
    const int64_t wide = (job.width + panel - 1) / panel * panel;
    const auto* q = static_cast<const float*>(job.q);
    for (int64_t r = 0; r < job.rows; ++r)
        job.factors[r] =
            pack_row(q + r * job.q_row, job.q_step, job.depth, job.queries + r * depth);
    multiply<Bytes>(job.queries, depth, job.keys, depth, job.scores, job.rows, all, job.key_sums);
    for (int64_t r = 0; r < job.rows; ++r) {
        float* scores = job.scores + r * all;
        const float by = job.factors[r] * job.scale * base_two;
        for (int64_t i = 0; i < all; i += lanes)
            store(scores + i,
                  floats_of(load<Integers>(scores + i)) * (load<Floats>(job.key_steps + i) * by));
        for (AttentionTerm term : job.terms) {
            term.factor *= base_two;
            add_term(term, r, job.columns, scores);
        }
        job.factors[r] = 1 / probabilities(scores, job.columns, all);
    }
    multiply<Bytes>(reinterpret_cast<const Word*>(job.scores), all, job.values, steps, job.results,
                    job.rows, wide);
    for (int64_t r = 0; r < job.rows; ++r) {
        const float* from = job.results + r * wide;
        float* to = static_cast<float*>(job.y) + r * job.y_row;
        const bool replaced = job.instead && job.factors[r] != job.factors[r];
        const float factor = replaced ? 0.0F : job.factors[r];
        const float share = replaced ? *job.instead * static_cast<float>(job.columns) : 1.0F;
        for (int64_t i = 0; i < job.width; i += lanes) {
            const Floats sums = floats_of(load<Integers>(from + i));
            const Floats made = (load<Floats>(job.value_means + i) * share +
                                 sums * (load<Floats>(job.value_steps + i) * factor)) *
                                job.result_scale;
            const int64_t here = std::min(lanes, job.width - i);
            if (job.y_step == 1)
                _mm512_mask_storeu_ps(to + i, first_lanes(here), reinterpret_cast<__m512>(made));
            else
                for (int64_t k = 0; k < here; ++k) to[(i + k) * job.y_step] = made[k];
        }
    }
}
}  // namespace

const AttentionLoops attention_bytes = {panel, numbers, pack, run};

}  // namespace sn
