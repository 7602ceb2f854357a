// The loops of softmax(Q K^T + terms) V, compiled for the processors on which they are fast.
#pragma once

#include <cstdint>
#include <vector>

namespace sn {

// The same number for each score of a row or column, or one for each, times a factor.
struct AttentionTerm {
    const float* values;
    int64_t row_step, column_step;
    float factor;
};

// What the factors of the products are: eight bits are rounded anew in each attention.
enum class AttentionNumbers { float32, bf16, int8 };

// A float, two neighbours in bfloat16, or four in eight bits.
using Word [[gnu::may_alias]] = uint32_t;

// One matrix of each kind, and memory of one thread.
struct AttentionJob {
    int64_t rows, columns, depth, width;
    // Floats; or all of them bfloat16, where they are `rounded`.
    const void *q, *k, *v;
    bool rounded;
    // From one row of Q, key of K or V to the next, and from value to value.
    int64_t q_row, q_step, k_row, k_step, v_row, v_step;
    float scale, result_scale;
    std::vector<AttentionTerm> terms;
    // What takes the place of probabilities that are no numbers; null: nothing does.
    const float* instead;
    // Floats; or bfloat16 where the result is to be rounded.
    void* y;
    bool rounds;
    int64_t y_row, y_step;
    Word *keys, *values, *queries;
    float *scores, *results, *factors;
    // In eight bits: of each key its step and what is added to its sums, of each column of V its
    // step and its mean, and room for the means of K.
    float *key_steps, *value_steps, *value_means, *room;
    int32_t* key_sums;
};

struct AttentionLoops {
    // The columns of a panel of the products, and the numbers in a word.
    int64_t panel, numbers;
    // Packs K and V.
    void (*pack)(const AttentionJob& job);
    // All rows of Q.
    void (*run)(const AttentionJob& job);

    // Whether factors and results may be bfloat16.
    bool takes_rounded() const { return numbers == 2; }
    int64_t whole(int64_t columns) const { return (columns + panel - 1) / panel * panel; }
    int64_t words(int64_t count) const { return (count + numbers - 1) / numbers; }
};

extern const AttentionLoops attention_haswell, attention_skylake, attention_narrow, attention_bytes;
// The loops for this processor, with such factors or the next wider ones that it is fast at; null
// where single products are as fast.
const AttentionLoops* attention_loops(AttentionNumbers numbers);

}  // namespace sn
