#include "separable.hpp"

#include <algorithm>
#include <limits>

#include "../engine/bfloat16.hpp"
#include "../engine/instructions.hpp"
#include "../engine/net.hpp"
#include "../engine/parallel.hpp"

namespace sn {

using dnnl::memory;

namespace {
constexpr int64_t strip = SeparableJob::strip, lanes = SeparableJob::lanes;

uint16_t bits_of(float value) {
    BFloat16 rounded;
    rounded = value;
    uint16_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    return bits;
}

bool are(const std::vector<int64_t>& values, int64_t wanted) {
    return values.size() == 2 && values[0] == wanted && values[1] == wanted;
}

bool is_inference(const Layer& layer) {
    return !layer.has_gradients() && !layer.int8 && layer.bottoms.size() == 1 &&
           layer.options.integer("axis") == 1 && !layer.fused_sum && !layer.fused_ending;
}

bool has_windows_by_channel(const Layer& layer) {
    const auto kernel = layer.options.integers("kernel");
    return is_depthwise(layer) && layer.shape().size() == 4 && kernel.size() == 2 &&
           kernel[0] > 0 && kernel[1] > 0 && kernel[0] <= SeparableJob::most_taps / kernel[1];
}

bool multiplies_pixels(const Layer& layer) {
    const Options& options = layer.options;
    return options.integer("group") == 1 && are(options.integers("kernel"), 1) &&
           are(options.integers("stride"), 1) && are(options.integers("pad"), 0);
}

float least(const Layer& layer) {
    return layer.fused_relu ? 0.0F : -std::numeric_limits<float>::infinity();
}

void copy_bias(const FoldedWeights& folded, int64_t count, std::vector<float>& bias) {
    std::copy_n(folded.bias(), count, bias.begin());
}

size_t whole_strips(int64_t count) {
    return static_cast<size_t>((count + strip - 1) / strip * strip);
}
}  // namespace

bool Separable::suits(const Layer& layer, const Layer& product) {
    return has_amx() && layer.net->factors == memory::data_type::bf16 && is_inference(layer) &&
           is_inference(product) && has_windows_by_channel(layer) && multiplies_pixels(product);
}

Separable::Separable(const Layer& layer, const Window& window) {
    SeparableJob& job = job_;
    const Layer& product = *layer.fused_product;
    job.channels = window.source[1], job.height = window.source[2], job.width = window.source[3];
    job.outputs = product.options.integer("num_output");
    job.rows = window.target[2], job.columns = window.target[3];
    job.kernel_rows = window.weights[3], job.kernel_columns = window.weights[4];
    job.stride_y = window.strides[0], job.stride_x = window.strides[1];
    job.pad_y = window.before[0], job.pad_x = window.before[1];
    job.dilation_y = window.dilations[0] + 1, job.dilation_x = window.dilations[1] + 1;
    job.middle_least = least(layer), job.least = least(product);
    pixels_ = window.source[0] * job.rows * job.columns;
    memory::dims target = window.target;
    target[1] = job.outputs;
    source_ = {window.source, memory::data_type::bf16, memory::format_tag::nhwc};
    target_ = {target, memory::data_type::bf16, memory::format_tag::nhwc};
    zeros_.assign(static_cast<size_t>(job.width * job.channels), 0);
    middle_bias_.assign(whole_strips(job.channels), 0.0F);
    bias_.assign(whole_strips(job.outputs), 0.0F);
    // The pixels between the two stay in the second cache, beside weights.
    constexpr int64_t cached = int64_t{1} << 17;
    const int64_t wide = job.strips() * strip;
    job.block = std::clamp<int64_t>(cached / (2 * wide) / strip * strip, strip, 1024);
}

void Separable::pack_taps(const Layer& layer) {
    const SeparableJob& job = job_;
    const auto rows = windows_.rows(layer);
    const int64_t count = job.kernel_rows * job.kernel_columns;
    taps_.assign(static_cast<size_t>(job.strips() * job.pairs() * 2 * strip), 0);
    for (int64_t at = 0; at < job.strips() * strip; ++at) {
        const int64_t place = at % strip, channel = at - place + SeparableJob::shuffled(place);
        if (channel >= job.channels) continue;
        for (int64_t tap = 0; tap < count; ++tap) {
            const int64_t pair = at / strip * job.pairs() + tap / 2;
            taps_[static_cast<size_t>((pair * strip + place) * 2 + tap % 2)] =
                bits_of(rows.get()[channel * count + tap]);
        }
    }
}

void Separable::pack_product(const Layer& product) {
    const SeparableJob& job = job_;
    const auto rows = product_.rows(product);
    weights_.assign(bias_.size() * middle_bias_.size(), 0);
    for (int64_t output = 0; output < job.outputs; ++output)
        for (int64_t at = 0; at < job.strips() * strip; ++at) {
            const int64_t place = at % strip, channel = at - place + SeparableJob::shuffled(place);
            if (channel >= job.channels) continue;
            const int64_t tile = output / lanes * job.strips() + at / strip;
            const int64_t to = (tile * lanes + place / 2) * strip + output % lanes * 2 + place % 2;
            weights_[static_cast<size_t>(to)] =
                bits_of(rows.get()[output * job.channels + channel]);
        }
}

void Separable::run(const Layer& layer) {
    const Layer& product = *layer.fused_product;
    windows_.follow(layer), product_.follow(product);
    if (windows_.is_stale(layer)) pack_taps(layer);
    if (product_.is_stale(product)) pack_product(product);
    std::vector<float> ordered(middle_bias_.size(), 0.0F);
    copy_bias(windows_, job_.channels, ordered);
    for (size_t at = 0; at < ordered.size(); ++at) {
        const size_t place = at % strip;
        const auto from = static_cast<size_t>(SeparableJob::shuffled(static_cast<int64_t>(place)));
        middle_bias_[at] = ordered[at - place + from];
    }
    copy_bias(product_, job_.outputs, bias_);
    SeparableJob job = job_;
    job.images = values_of<uint16_t>(layer.bottoms[0]->data.read(source_));
    job.to = values_of<uint16_t>(layer.fused_last->tops[0]->data.write(target_));
    job.zeros = zeros_.data(), job.taps = taps_.data(), job.weights = weights_.data();
    job.middle_bias = middle_bias_.data(), job.bias = bias_.data();
    const int64_t wide = job.strips() * strip, room = job.block * wide, pixels = pixels_;
    const auto pages_taken = pages().take(static_cast<size_t>(room * threads()) * sizeof(uint16_t));
    auto* middle = reinterpret_cast<uint16_t*>(pages_taken.get());
    parallel((pixels + strip - 1) / strip, wide * job.outputs, [=](int64_t begin, int64_t end) {
        separable_rows(job, middle + omp_get_thread_num() * room, begin * strip,
                       std::min(pixels, end * strip));
    });
}

}  // namespace sn
