// The innermost loops of convolutions of pictures, which have up to four channels, in eight bits or
// in bfloat16, for processors with AMX, or with products of narrow numbers in vectors.
#pragma once

#include <cstdint>

namespace sn {

struct PictureJob {
    static constexpr int64_t most_channels = 4, lanes = 16, row_bytes = 64;
    enum class Type { s8, u8, bf16, f32 };

    // Planes of float32 come in; values with their channels last go out.
    int64_t channels, height, width, outputs, rows, columns;
    int64_t kernel_rows, kernel_columns, stride_y, stride_x, pad_y, pad_x, dilation_y;
    // What inputs are rounded to: in eight bits to multiples of 1 / inverse.
    Type factors;
    float inverse;
    // The byte that stands for zero: 128 where numbers with a sign are kept as such without one.
    uint8_t zero;
    // A block is so many rows of outputs of one image, for which the rows of the input, rounded and
    // with channels last, are kept in lines of so many bytes.
    int64_t block_rows, blocks, line_bytes;

    const float* images;
    // For each 16 outputs and each row of the window, 64 bytes for each 4 bytes of that row.
    const void* weights;
    // What the sums of vectors of eight bits begin with.
    const int32_t* starts;
    // Of each output: y = sum * factor + bias, at least `least`; rounded to multiples of
    // 1 / inverse_out in eight bits.  Factors are 1 in bfloat16.  There are numbers for whole
    // sixteens of outputs.
    const float *factor, *bias;
    float least;
    Type type;
    float inverse_out;
    void* to;

    // The bytes of one number, and those of one row of a window in whole fours.
    int64_t number_bytes() const { return factors == Type::bf16 ? 2 : 1; }
    int64_t window_bytes() const {
        return (kernel_columns * channels * number_bytes() + 3) / 4 * 4;
    }
    int64_t input_rows(int64_t outputs_rows) const {
        return (outputs_rows - 1) * stride_y + (kernel_rows - 1) * dilation_y + 1;
    }
};

// Computes blocks `begin` to `end`, counted through all images; `lines` has room for one block's
// lines.  Only for processors, and compilers, of which has_amx() or has_avx512_bytes() is true.
#if defined(SPARKNET_AMX)
void picture_rows_amx(const PictureJob& job, void* lines, int64_t begin, int64_t end);
void picture_rows_avx512(const PictureJob& job, void* lines, int64_t begin, int64_t end);
#else
inline void picture_rows_amx(const PictureJob&, void*, int64_t, int64_t) {}
inline void picture_rows_avx512(const PictureJob&, void*, int64_t, int64_t) {}
#endif

}  // namespace sn
