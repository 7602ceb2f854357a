#include "spread_points.hpp"

#include <algorithm>
#include <cstring>

#include "../engine/bfloat16.hpp"
#include "../engine/net.hpp"
#include "../engine/parallel.hpp"

namespace sn {

using dnnl::memory;

namespace {
bool suits(const Window& window) {
    const auto are = [](const memory::dims& dims, size_t from, int64_t value) {
        return std::all_of(dims.begin() + static_cast<long>(from), dims.end(),
                           [=](int64_t dim) { return dim == value; });
    };
    constexpr int64_t lanes = 16;
    if (window.source[1] % lanes > 0 || window.outputs % lanes > 0) return false;
    return window.factors == memory::data_type::bf16 && window.source.size() == 4 &&
           window.weights.size() == 4 && are(window.weights, 2, 1) && are(window.before, 0, 0) &&
           are(window.after, 0, 0) && !are(window.strides, 0, 1);
}

dnnl::convolution_backward_data::primitive_desc describe(const Window& window,
                                                         const memory::dims& few) {
    constexpr auto images = memory::format_tag::nhwc;
    const memory::desc from(few, window.factors, images), to(window.target, window.factors, images);
    const memory::desc weights(window.weights, window.factors, memory::format_tag::any);
    const memory::dims once = {1, 1}, none = {0, 0};
    const dnnl::convolution_forward::primitive_desc forward(
        cpu(), dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, from,
        weights, memory::desc(), to, once, none, none, none, attributes());
    return {cpu(),       dnnl::algorithm::convolution_direct,
            from,        weights,
            to,          once,
            none,        none,
            none,        forward,
            attributes()};
}
}  // namespace

std::unique_ptr<SpreadPoints> SpreadPoints::make(const Window& window) {
    if (!suits(window)) return nullptr;
    return std::unique_ptr<SpreadPoints>(new SpreadPoints(window));
}

SpreadPoints::SpreadPoints(const Window& window)
    : data_(window.source, window.factors, memory::format_tag::nhwc),
      few_(window.target),
      strides_(window.strides) {
    few_[1] = window.source[1];
    description_ = describe(window, few_);
    primitive_ = dnnl::convolution_backward_data(description_);
}

void SpreadPoints::run(const memory& slopes, const memory& weights, const memory& data) const {
    const auto desc = description_.diff_src_desc();
    const auto room = pages().take(desc.get_size());
    sn::run(primitive_, {{DNNL_ARG_DIFF_DST, slopes},
                         {DNNL_ARG_WEIGHTS, weights},
                         {DNNL_ARG_DIFF_SRC, memory(desc, cpu(), room.get())}});
    const auto* from = reinterpret_cast<const BFloat16*>(room.get());
    auto* to = values_of<BFloat16>(data);
    const auto dims = data_.get_dims();
    const int64_t channels = dims[1], height = dims[2], width = dims[3];
    const int64_t rows = few_[2], columns = few_[3], down = strides_[0], across = strides_[1];
    parallel(dims[0] * height, width * channels, [=](int64_t begin, int64_t end) {
        const auto bytes = static_cast<size_t>(channels) * sizeof(BFloat16);
        for (int64_t line = begin; line < end; ++line) {
            const int64_t y = line % height / down, image = line / height;
            const bool met = line % height % down == 0 && y < rows;
            const BFloat16* row = from + (image * rows + y) * columns * channels;
            BFloat16* at = to + line * width * channels;
            for (int64_t x = 0; x < width; ++x, at += channels)
                if (met && x % across == 0 && x / across < columns)
                    std::memcpy(at, row + x / across * channels, bytes);
                else
                    std::memset(at, 0, bytes);
        }
    });
}

}  // namespace sn
