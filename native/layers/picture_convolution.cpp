#include "picture_convolution.hpp"

#include <algorithm>
#include <limits>

#include "../engine/int8.hpp"
#include "../engine/net.hpp"
#include "../engine/parallel.hpp"
#include "int8_convolution.hpp"
#include "tiles.hpp"

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
        default:
            return Type::f32;
    }
}

bool suits(const Layer& layer, const Window& window, bool fuse) {
    return has_amx() && window.weights.size() == 4 &&
           window.source[1] <= PictureJob::most_channels && window.dilations[1] == 0 &&
           !(fuse && layer.fused_sum);
}
}  // namespace

std::unique_ptr<PictureConvolution> PictureConvolution::make(const Layer& layer,
                                                             const Window& window, bool fuse) {
    if (!suits(layer, window, fuse)) return nullptr;
    std::unique_ptr<PictureConvolution> made(new PictureConvolution(layer, window, fuse));
    const bool fits = made->job_.window_bytes() <= PictureJob::row_bytes;
    return fits ? std::move(made) : nullptr;
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
    const Blob& bottom = *layer.bottoms[0];
    step_ = bottom.step, job.inverse = 1 / step_, job.is_signed = bottom.is_signed;
    narrow_target_ = stored_in_int8(layer, window, fuse);
    target_ = {window.target, memory::data_type::f32, memory::format_tag::nhwc};
    if (narrow_target_) target_ = narrow_target_->desc, job.inverse_out = 1 / narrow_target_->step;
    job.type = type_of(target_.get_data_type());
    job.least = fuse && layer.fused_relu ? 0.0F : -std::numeric_limits<float>::infinity();
    // Windows at the right end of a line are read in whole fours of bytes.
    constexpr int64_t line = 64, cached = int64_t{1} << 14;
    const int64_t reach = (job.columns - 1) * job.stride_x + job.kernel_columns;
    const int64_t bytes = reach * job.channels + 3;
    job.line_bytes = (bytes + line - 1) / line * line;
    const int64_t more = cached / job.line_bytes - job.input_rows(1);
    job.block_rows =
        std::clamp<int64_t>(more / job.stride_y + 1, std::min<int64_t>(4, job.rows), job.rows);
    job.blocks = (job.rows + job.block_rows - 1) / job.block_rows;
}

// In each tile four bytes of the window's row lie beside each other for sixteen outputs.
void PictureConvolution::pack(const Layer& layer) {
    const PictureJob& job = job_;
    const auto rows = folded_.rows(layer);
    const int64_t bytes = job.window_bytes(), area = job.kernel_rows * job.kernel_columns;
    const int64_t row = area * job.channels, lanes = PictureJob::lanes;
    const int64_t panels = (job.outputs + lanes - 1) / lanes;
    std::vector<float> steps;
    const auto numbers = round_rows(rows.get(), job.outputs, row, steps);
    factors_.assign(static_cast<size_t>(panels * lanes), 0.0F);
    for (size_t o = 0; o < steps.size(); ++o) factors_[o] = steps[o] * step_;
    weights_.assign(static_cast<size_t>(panels * lanes * job.kernel_rows * bytes), 0);
    for (int64_t o = 0; o < job.outputs; ++o)
        for (int64_t c = 0; c < job.channels; ++c)
            for (int64_t k = 0; k < area; ++k) {
                const int64_t at = k % job.kernel_columns * job.channels + c;
                const int64_t line = o / lanes * job.kernel_rows + k / job.kernel_columns;
                const int64_t to = (line * bytes + at / 4 * 4) * lanes + o % lanes * 4 + at % 4;
                weights_[static_cast<size_t>(to)] =
                    numbers[static_cast<size_t>(o * row + c * area + k)];
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
    job.weights = weights_.data(), job.factor = factors_.data(), job.bias = bias_.data();
    const memory to = narrow_target_ ? top.write(*narrow_target_) : top.write(target_);
    job.to = to.get_data_handle();
    const int64_t room = job.input_rows(job.block_rows) * job.line_bytes;
    const int64_t products = job.block_rows * job.columns * job.outputs * job.kernel_rows *
                             job.kernel_columns * job.channels;
    const auto lines = pages().take(static_cast<size_t>(room * threads()));
    auto* bytes = reinterpret_cast<uint8_t*>(lines.get());
    parallel(
        images_ * job.blocks,
        [=](int64_t begin, int64_t end) {
            picture_rows(job, bytes + omp_get_thread_num() * room, begin, end);
        },
        products / 8);
}

}  // namespace sn
