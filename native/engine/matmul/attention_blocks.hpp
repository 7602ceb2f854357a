// The loops of an attention.  Included once for each instruction set, after a definition of
// SN_TABLE, the name of the table, and of SN_NARROW for factors in bfloat16.
#include "attention_vectors.hpp"

namespace sn {

namespace {
#if defined(SN_NARROW)
constexpr int64_t numbers = 2;

SN_ALWAYS Words narrowed(Floats first, Floats second) {
    Words made;
    const __m512bh pairs =
        _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(second), reinterpret_cast<__m512>(first));
    std::memcpy(&made, &pairs, sizeof made);
    return made;
}

// Neighbours of a row in one word.
SN_ALWAYS Words words_of(const float* from, float factor) {
    return narrowed(load<Floats>(from) * factor, load<Floats>(from + lanes) * factor);
}

SN_ALWAYS Floats floats_of(const uint16_t* from) {
    const Words wide = reinterpret_cast<Words>(_mm512_cvtepu16_epi32(load<__m256i>(from)));
    return reinterpret_cast<Floats>(wide << 16);
}

SN_ALWAYS Words words_of(const uint16_t* from, float factor) {
    if (factor == 1) return load<Words>(from);
    return narrowed(floats_of(from) * factor, floats_of(from + lanes) * factor);
}

// The numbers of the first half and those of the second in one word each.
SN_ALWAYS Words interleaved(__m512i halves) {
    const __m512i order =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return reinterpret_cast<Words>(_mm512_permutexvar_epi16(order, halves));
}

SN_ALWAYS Words words_of(Floats first, Floats second) {
    return interleaved(reinterpret_cast<__m512i>(narrowed(first, second)));
}

// Numbers of two rows in one word.
SN_ALWAYS Words words_of(const float* first, const float* second) {
    return words_of(load<Floats>(first), load<Floats>(second));
}

SN_ALWAYS Words words_of(const uint16_t* first, const uint16_t* second) {
    const __m512i low = _mm512_castsi256_si512(load<__m256i>(first));
    return interleaved(_mm512_inserti64x4(low, load<__m256i>(second), 1));
}

SN_ALWAYS uint32_t word_of(float first, float second) {
    const Floats a = {first}, b = {second};
    return words_of(a, b)[0];
}

SN_ALWAYS float float_of(float value) {
    return value;
}

SN_ALWAYS float float_of(uint16_t value) {
    const uint32_t wide = static_cast<uint32_t>(value) << 16;
    float made;
    std::memcpy(&made, &wide, sizeof made);
    return made;
}

void store_rounded(const float* from, float factor, int64_t count, int64_t step, uint16_t* to) {
    int64_t i = 0;
    if (step == 1)
        for (; i + lanes <= count; i += lanes) {
            const Floats values = load<Floats>(from + i) * factor;
            const __m256bh made = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(values));
            std::memcpy(to + i, &made, sizeof made);
        }
    for (; i < count; ++i) {
        const auto word = static_cast<uint16_t>(word_of(from[i] * factor, 0));
        std::memcpy(to + i * step, &word, sizeof word);
    }
}

struct Factors {
    using Sums = Floats;
    [[gnu::always_inline]] static void add_product(Floats& sum, uint32_t a, Words b) {
        const __m512i all = _mm512_set1_epi32(static_cast<int>(a));
        __m512bh left, right;
        std::memcpy(&left, &all, sizeof left);
        std::memcpy(&right, &b, sizeof right);
        sum =
            reinterpret_cast<Floats>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), left, right));
    }
};
#else
constexpr int64_t numbers = 1;

SN_ALWAYS Words words_of(const float* from, float factor) {
    return reinterpret_cast<Words>(load<Floats>(from) * factor);
}

SN_ALWAYS Words words_of(const float* first, const float*) {
    return load<Words>(first);
}

SN_ALWAYS uint32_t word_of(float first, float) {
    uint32_t made;
    std::memcpy(&made, &first, sizeof made);
    return made;
}

SN_ALWAYS float float_of(float value) {
    return value;
}

struct Factors {
    using Sums = Floats;
    [[gnu::always_inline]] static void add_product(Floats& sum, uint32_t a, Words b) {
        float value;
        std::memcpy(&value, &a, sizeof value);
        sum += value * reinterpret_cast<Floats>(b);
    }
};
#endif

int64_t words(int64_t count) {
    return (count + numbers - 1) / numbers;
}

// A row of numbers `step` apart as words; behind them zeros.
template <class T>
void pack_row(const T* from, int64_t step, int64_t count, float factor, Word* to) {
    constexpr int64_t many = lanes * numbers;
    int64_t at = 0;
    if (step == 1)
        for (; at + many <= count; at += many)
            store(to + at / numbers, words_of(from + at, factor));
    for (; at < count; at += numbers) {
        const float second = at + 1 < count ? float_of(from[(at + 1) * step]) * factor : 0.0F;
        to[at / numbers] = word_of(float_of(from[at * step]) * factor, second);
    }
}

// K in panels: word s of each key of a panel lies in a row.
template <class T>
void pack_keys(const AttentionJob& job, const T* keys) {
    const int64_t steps = words(job.depth), whole = (steps + lanes - 1) / lanes * lanes;
    Word* rows = reinterpret_cast<Word*>(job.scores);
    const int64_t all = (job.columns + panel - 1) / panel * panel;
    for (int64_t key = 0; key < all; key += lanes) {
        for (int64_t i = 0; i < lanes; ++i) {
            Word* row = rows + i * whole;
            if (key + i < job.columns)
                pack_row(keys + (key + i) * job.k_row, job.k_step, job.depth, 1, row);
            std::fill(row + (key + i < job.columns ? steps : 0), row + whole, 0U);
        }
        Word* to = job.keys + key / panel * panel * steps + key % panel;
        Word rest[lanes * lanes];
        for (int64_t s = 0; s < steps; s += lanes) {
            if (s + lanes <= steps) {
                turn(rows + s, whole, to + s * panel, panel);
                continue;
            }
            turn(rows + s, whole, rest, lanes);
            for (int64_t i = 0; i < steps - s; ++i)
                store(to + (s + i) * panel, load<Words>(rest + i * lanes));
        }
    }
}

// V in panels: word s of a column has the values of one or two keys.
template <class T>
void pack_values(const AttentionJob& job, const T* values) {
    const int64_t steps = words(job.columns);
    const auto value = [&](int64_t key, int64_t column) {
        return key < job.columns ? float_of(values[key * job.v_row + column * job.v_step]) : 0.0F;
    };
    for (int64_t first = 0; first < job.width; first += panel) {
        Word* to = job.values + first * steps;
        const int64_t here = std::min(panel, job.width - first);
        for (int64_t s = 0; s < steps; ++s, to += panel) {
            const int64_t key = s * numbers;
            int64_t c = 0;
            if (job.v_step == 1 && key + numbers <= job.columns)
                for (; c + lanes <= here; c += lanes) {
                    const T* from = values + key * job.v_row + first + c;
                    store(to + c, words_of(from, from + (numbers - 1) * job.v_row));
                }
            for (; c < here; ++c) to[c] = word_of(value(key, first + c), value(key + 1, first + c));
            std::fill(to + here, to + panel, 0U);
        }
    }
}

template <class T>
void pack_queries(const AttentionJob& job, const T* queries) {
    const int64_t depth = words(job.depth);
    for (int64_t r = 0; r < job.rows; ++r)
        pack_row(queries + r * job.q_row, job.q_step, job.depth, job.scale,
                 job.queries + r * depth);
}

// Calls body with a pointer to the factors' type.
template <class F>
void typed(const AttentionJob& job, F body) {
#if defined(SN_NARROW)
    if (job.rounded) return body(static_cast<const uint16_t*>(nullptr));
#endif
    static_cast<void>(job);
    body(static_cast<const float*>(nullptr));
}

void pack(const AttentionJob& job) {
    typed(job, [&](auto type) {
        pack_keys(job, static_cast<decltype(type)>(job.k));
        pack_values(job, static_cast<decltype(type)>(job.v));
    });
}

void write_row(const AttentionJob& job, int64_t row, const float* from) {
    const int64_t at = row * job.y_row;
    const float factor = job.factors[row];
#if defined(SN_NARROW)
    if (job.rounds)
        return store_rounded(from, factor, job.width, job.y_step,
                             static_cast<uint16_t*>(job.y) + at);
#endif
    float* to = static_cast<float*>(job.y) + at;
    if (job.y_step == 1)
        for (int64_t i = 0; i < job.width; ++i) to[i] = from[i] * factor;
    else
        for (int64_t i = 0; i < job.width; ++i) to[i * job.y_step] = from[i] * factor;
}

// e to the power of numbers that are not above zero, as fast_exp computes it.
SN_ALWAYS Floats exponential_of(Floats x) {
    constexpr float least = -87.3365F, shifter = 12582912.0F;
    const Floats inside = greater(Floats{} + least, x);
    const Floats shifted = inside * 1.44269504F + shifter;
    const Floats whole = shifted - shifter;
    const Floats r = (inside - whole * 0.693359375F) + whole * 2.12194440e-4F;
    Floats p = r * 1.9875691500e-4F + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1.0F;
    // The whole number stands in the last bits of what was shifted; NaN takes no more than its
    // sign from it.
    const Words exponent = reinterpret_cast<Words>(shifted) << 23;
    const auto value = reinterpret_cast<Floats>(reinterpret_cast<Words>(p) + exponent);
    return x == x ? (x < least ? Floats{} : value) : x;
}

// A row of scores becomes e to the power of what they lie below the largest; returns the sum.
// Behind the row they become zero.
SN_ALWAYS float exponentials(float* scores, int64_t columns, int64_t all) {
    constexpr float none = -std::numeric_limits<float>::infinity();
    const int64_t inside = columns / lanes * lanes;
    Words places;
    for (int64_t k = 0; k < lanes; ++k) places[k] = static_cast<uint32_t>(inside + k);
    for (int64_t i = inside; i < all; i += lanes, places += static_cast<uint32_t>(lanes)) {
        const Floats values = load<Floats>(scores + i);
        store(scores + i, places < static_cast<uint32_t>(columns) ? values : Floats{} + none);
    }
    Floats most[2] = {load<Floats>(scores), load<Floats>(scores + lanes)};
    for (int64_t i = panel; i < all; i += panel)
        for (int k = 0; k < 2; ++k)
            most[k] = greater(most[k], load<Floats>(scores + i + k * lanes));
    const float largest =
        folded(greater(most[0], most[1]), [](float a, float b) { return a > b ? a : b; });
    Floats sums[2] = {};
    for (int64_t i = 0; i < all; i += panel)
        for (int k = 0; k < 2; ++k) {
            float* at = scores + i + k * lanes;
            const Floats value = exponential_of(load<Floats>(at) - largest);
            store(at, value);
            sums[k] += value;
        }
    return folded(sums[0] + sums[1], [](float a, float b) { return a + b; });
}

void run(const AttentionJob& job) {
    const int64_t depth = words(job.depth), steps = words(job.columns);
    const int64_t all = (job.columns + panel - 1) / panel * panel;
    const int64_t wide = (job.width + panel - 1) / panel * panel;
    typed(job, [&](auto type) { pack_queries(job, static_cast<decltype(type)>(job.q)); });
    multiply<Factors>(job.queries, depth, job.keys, depth, job.scores, job.rows, all);
    for (int64_t r = 0; r < job.rows; ++r) {
        float* scores = job.scores + r * all;
        for (const AttentionTerm& term : job.terms) add_term(term, r, job.columns, scores);
        float sum = exponentials(scores, job.columns, all);
        if (job.instead && sum != sum) {
            std::fill(scores, scores + job.columns, *job.instead);
            std::fill(scores + job.columns, scores + all, 0.0F);
            sum = 1;
        }
        job.factors[r] = job.result_scale / sum;
        if (numbers > 1) pack_row(scores, 1, all, 1, reinterpret_cast<Word*>(scores));
    }
    multiply<Factors>(reinterpret_cast<const Word*>(job.scores), all, job.values, steps,
                      job.results, job.rows, wide);
    for (int64_t r = 0; r < job.rows; ++r) write_row(job, r, job.results + r * wide);
}
}  // namespace

const AttentionLoops SN_TABLE = {panel, numbers, pack, run};

}  // namespace sn
