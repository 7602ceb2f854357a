#include "picture_convolution.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "../engine/bfloat16.hpp"
#include "../engine/instructions.hpp"
#include "../engine/int8.hpp"
#include "../engine/net.hpp"
#include "../engine/parallel.hpp"
#include "int8_convolution.hpp"

namespace sn {

using dnnl::memory;
using Type = PictureJob::Type;

namespace {
Type type_of(memory::data_type type) {
    switch (type) {
        case memory::data_type::s8:
            return Type::s8;
        case memory::data_type::u8:
            return Type::u8;
        case memory::data_type::bf16:
            return Type::bf16;
        default:
            return Type::f32;
    }
}

bool is_narrow(const Layer& layer, const Window& window) {
    return window.factors == memory::data_type::bf16 && !layer.has_gradients();
}

bool suits(const Layer& layer, const Window& window, bool fuse) {
    return (has_amx() || has_avx512_bytes()) &&
           (Int8Convolution::suits(layer, window) || is_narrow(layer, window)) &&
           window.source.size() == 4 && layer.options.integer("axis") == 1 &&
           window.weights.size() == 4 && window.source[1] <= PictureJob::most_channels &&
           window.dilations[1] == 0 && !(fuse && (layer.fused_sum || layer.fused_ending));
}

// Whether this is faster than oneDNN, which has no kernels for few channels in eight bits.
bool pays(const PictureJob& job) {
    const int64_t row = job.window_bytes();
    if (has_amx()) {
        // In bfloat16 oneDNN's patches are as fast where a window has short rows, or many.
        constexpr int64_t least_bytes = 16, most_rows = 5;
        return row <= PictureJob::row_bytes &&
               (job.factors != Type::bf16 || (row >= least_bytes && job.kernel_rows <= most_rows));
    }
    // oneDNN multiplies two channels of a tap at once, which here are any two numbers of a window's
    // row; what follows takes it six such products less.
    const int64_t taps = job.kernel_rows * job.kernel_columns;
    return job.factors != Type::bf16 ||
           job.kernel_rows * row / 4 + 6 <= taps * ((job.channels + 1) / 2);
}
}  // namespace

std::unique_ptr<PictureConvolution> PictureConvolution::make(const Layer& layer,
                                                             const Window& window, bool fuse) {
    if (!suits(layer, window, fuse)) return nullptr;
    std::unique_ptr<PictureConvolution> made(new PictureConvolution(layer, window, fuse));
    return pays(made->job_) ? std::move(made) : nullptr;
}

PictureConvolution::PictureConvolution(const Layer& layer, const Window& window, bool fuse)
    : fuse_(fuse), images_(window.source[0]) {
    PictureJob& job = job_;
    job.channels = window.source[1], job.height = window.source[2], job.width = window.source[3];
    job.outputs = window.outputs, job.rows = window.target[2], job.columns = window.target[3];
    job.kernel_rows = window.weights[2], job.kernel_columns = window.weights[3];
    job.stride_y = window.strides[0], job.stride_x = window.strides[1];
    job.pad_y = window.before[0], job.pad_x = window.before[1];
    job.dilation_y = window.dilations[0] + 1;
    const bool int8 = Int8Convolution::suits(layer, window);
    const auto type = int8 ? memory::data_type::f32 : memory::data_type::bf16;
    target_ = {window.target, type, memory::format_tag::nhwc};
    job.factors = Type::bf16;
    if (int8) {
        folded_.correct_int8();
        const Blob& bottom = *layer.bottoms[0];
        step_ = bottom.step, job.inverse = 1 / step_;
        job.factors = bottom.is_signed ? Type::s8 : Type::u8;
        if (bottom.is_signed && !has_amx()) job.zero = 128;
        narrow_target_ = stored_in_int8(layer, window, fuse);
    }
    if (narrow_target_) target_ = narrow_target_->desc, job.inverse_out = 1 / narrow_target_->step;
    job.type = type_of(target_.get_data_type());
    job.least = fuse && layer.fused_relu ? 0.0F : -std::numeric_limits<float>::infinity();
    // Windows at the right end of a line are read in whole fours of bytes.
    constexpr int64_t line = 64, cached = int64_t{1} << 14;
    const int64_t reach = (job.columns - 1) * job.stride_x + job.kernel_columns;
    const int64_t bytes = reach * job.channels * job.number_bytes() + 3;
    job.line_bytes = (bytes + line - 1) / line * line;
    const int64_t more = cached / job.line_bytes - job.input_rows(1);
    job.block_rows =
        std::clamp<int64_t>(more / job.stride_y + 1, std::min<int64_t>(4, job.rows), job.rows);
    job.blocks = (job.rows + job.block_rows - 1) / job.block_rows;
}

void PictureConvolution::pack(const Layer& layer) {
    constexpr int64_t lanes = PictureJob::lanes;
    factors_.assign(static_cast<size_t>((job_.outputs + lanes - 1) / lanes * lanes), 1.0F);
    starts_.assign(factors_.size(), 0);
    const auto rows = folded_.rows(layer);
    const int64_t row = layer.params[0]->count() / job_.outputs;
    if (job_.factors == Type::bf16) {
        std::vector<BFloat16> numbers(static_cast<size_t>(job_.outputs * row));
        for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = rows.get()[i];
        return pack(numbers);
    }
    std::vector<float> steps;
    const auto numbers = round_rows(rows.get(), job_.outputs, row, steps);
    for (size_t o = 0; o < steps.size(); ++o) factors_[o] = steps[o] * step_;
    for (int64_t o = 0; o < job_.outputs; ++o)
        for (int64_t i = o * row; i < (o + 1) * row; ++i)
            starts_[static_cast<size_t>(o)] -= job_.zero * numbers[static_cast<size_t>(i)];
    pack(numbers);
}

// In each tile four bytes of the window's row lie beside each other for sixteen outputs.
template <class T>
void PictureConvolution::pack(const std::vector<T>& numbers) {
    const PictureJob& job = job_;
    constexpr int64_t lanes = PictureJob::lanes, few = 4 / static_cast<int64_t>(sizeof(T));
    const int64_t bytes = job.window_bytes(), area = job.kernel_rows * job.kernel_columns;
    weights_.assign(factors_.size() * static_cast<size_t>(job.kernel_rows * bytes), 0);
    auto number = numbers.begin();
    for (int64_t o = 0; o < job.outputs; ++o)
        for (int64_t c = 0; c < job.channels; ++c)
            for (int64_t k = 0; k < area; ++k, ++number) {
                const int64_t at = k % job.kernel_columns * job.channels + c;
                const int64_t line = o / lanes * job.kernel_rows + k / job.kernel_columns;
                const int64_t four = (line * bytes / 4 + at / few) * lanes + o % lanes;
                std::memcpy(&weights_[static_cast<size_t>(four * 4) +
                                      static_cast<size_t>(at % few) * sizeof(T)],
                            &*number, sizeof(T));
            }
}

void PictureConvolution::run(Layer& layer, size_t i) {
    if (fuse_)
        folded_.follow(layer);
    else
        folded_.follow_alone(layer);
    if (folded_.is_stale(layer)) pack(layer);
    bias_.assign(factors_.size(), 0.0F);
    std::copy_n(folded_.bias(), job_.outputs, bias_.begin());
    Tensor& top = fuse_ ? layer.fused_last->tops[0]->data : layer.tops[i]->data;
    PictureJob job = job_;
    job.images = layer.bottom(i);
    job.weights = weights_.data(), job.starts = starts_.data();
    job.factor = factors_.data(), job.bias = bias_.data();
    const memory to = narrow_target_ ? top.write(*narrow_target_) : top.write(target_);
    job.to = to.get_data_handle();
    const int64_t room = job.input_rows(job.block_rows) * job.line_bytes;
    const int64_t products = job.block_rows * job.columns * job.outputs * job.kernel_rows *
                             job.kernel_columns * job.channels;
    const auto lines = pages().take(static_cast<size_t>(room * threads()));
    auto* bytes = reinterpret_cast<uint8_t*>(lines.get());
    const auto compute = has_amx() ? picture_rows_amx : picture_rows_avx512;
    parallel(images_ * job.blocks, products / 8, [=](int64_t begin, int64_t end) {
        compute(job, bytes + omp_get_thread_num() * room, begin, end);
    });
}

}  // namespace sn
