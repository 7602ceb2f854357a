#include "depthwise.hpp"

#include <algorithm>

#include "../engine/instructions.hpp"
#include "../engine/lanes.hpp"
#include "../engine/parallel.hpp"
#include "../engine/pass.hpp"
#include "planes.hpp"

namespace sn {

using dnnl::memory;

namespace {
// Channels that the loops take at once.
constexpr int64_t most = 32;

// What one pixel of the target is summed up from: values, and the weights of their taps.
struct Sum {
    const BFloat16* const* x;
    const float* const* w;
    int64_t terms;
    const float* bias;
    bool adds, relu;
};

SN_INLINE void sum_lanes(const Sum& sum, int64_t at, BFloat16* to) {
    Lanes total = sum.bias ? lanes_of(sum.bias + at) : Lanes{};
    for (int64_t t = 0; t < sum.terms; ++t)
        total += lanes_of(sum.w[t] + at) * lanes_of(sum.x[t] + at);
    if (sum.adds) total += lanes_of(to + at);
    if (sum.relu) total = total > Lanes{} ? total : Lanes{};
    put(total, to + at);
}

SN_INLINE void sum_channel(const Sum& sum, int64_t at, BFloat16* to) {
    float total = sum.bias ? sum.bias[at] : 0.0F;
    for (int64_t t = 0; t < sum.terms; ++t) total += sum.w[t][at] * sum.x[t][at];
    if (sum.adds) total += to[at];
    to[at] = sum.relu && !(total > 0) ? 0.0F : total;
}

SN_KERNEL void sum_pixel(const Sum& sum, int64_t channels, BFloat16* to) {
    int64_t at = 0;
    for (; at + lanes <= channels; at += lanes) sum_lanes(sum, at, to);
    for (; at < channels; ++at) sum_channel(sum, at, to);
}

// Pixels of a row of the slopes, and those of the source that one tap takes there.
struct Pairs {
    const BFloat16 *x, *dy;
    int64_t count, x_step, dy_step;
};

SN_KERNEL void multiply_pairs(const Pairs& pairs, int64_t channels, float* sums) {
    int64_t at = 0;
    for (; at + lanes <= channels; at += lanes) {
        Lanes total{};
        for (int64_t i = 0; i < pairs.count; ++i)
            total += lanes_of(pairs.x + i * pairs.x_step + at) *
                     lanes_of(pairs.dy + i * pairs.dy_step + at);
        put(lanes_of(sums + at) + total, sums + at);
    }
    for (; at < channels; ++at)
        for (int64_t i = 0; i < pairs.count; ++i)
            sums[at] += pairs.x[i * pairs.x_step + at] * pairs.dy[i * pairs.dy_step + at];
}

SN_KERNEL void add_slopes(const Pairs& pairs, int64_t channels, float* sums) {
    for (int64_t i = 0; i < pairs.count; ++i)
        SN_EACH(c, channels) sums[c] += pairs.dy[i * pairs.dy_step + c];
}
}  // namespace

memory::desc by_taps(const Window& window, memory::data_type type) {
    const int64_t channels = window.source[1], taps = window.weights[4];
    return {window.weights, type, {1, channels, channels, taps * channels, channels}};
}

bool Depthwise::suits(const Window& window) {
    const bool learns = window.learns_depthwise && window.factors == memory::data_type::bf16 &&
                        window.weights.size() == 5;
    return learns || job(window);
}

std::optional<DepthwiseJob> Depthwise::job(const Window& window) {
    const auto& shape = window.weights;  // groups, their outputs and inputs, rows and columns
    if (!window.depthwise || window.learns_depthwise || !window.is_image || !has_avx512_bf16() ||
        window.factors != memory::data_type::bf16 || shape[3] != shape[4] ||
        (shape[3] != 3 && shape[3] != 5))
        return std::nullopt;
    DepthwiseJob made{};
    made.channels = window.source[1], made.height = window.source[2];
    made.width = window.source[3];
    made.rows = window.target[2], made.columns = window.target[3], made.side = shape[3];
    made.stride_y = window.strides[0], made.stride_x = window.strides[1];
    made.pad_y = window.before[0], made.pad_x = window.before[1];
    made.dilation_y = window.dilations[0] + 1, made.dilation_x = window.dilations[1] + 1;
    return made;
}

Depthwise::Axis Depthwise::axis(const Window& window, size_t number, bool turned) {
    const int64_t in = window.source[number + 2], out = window.target[number + 2];
    Axis made{turned ? out : in,
              turned ? in : out,
              window.weights[number + 3],
              window.strides[number],
              {},
              {}};
    made.runs.resize(static_cast<size_t>(made.taps));
    made.meetings.resize(static_cast<size_t>(made.target));
    for (int64_t place = 0; place < out; ++place)
        for (int64_t tap = 0; tap < made.taps; ++tap) {
            const int64_t seen = place * window.strides[number] +
                                 tap * (window.dilations[number] + 1) - window.before[number];
            if (seen < 0 || seen >= in) continue;
            const Meeting meeting{turned ? place : seen, tap};
            made.meetings[static_cast<size_t>(turned ? seen : place)].push_back(meeting);
            Run& run = made.runs[static_cast<size_t>(tap)];
            if (run.count++ == 0) run.place = place, run.from = seen;
        }
    return made;
}

Depthwise::Depthwise(const Window& window, Pass pass)
    : images_(window.source[0]),
      channels_(window.source[1]),
      rows_(axis(window, 0, pass == Pass::data)),
      columns_(axis(window, 1, pass == Pass::data)),
      job_(job(window)) {
    source_ = {window.source, memory::data_type::bf16, memory::format_tag::nhwc};
    target_ = {window.target, memory::data_type::bf16, memory::format_tag::nhwc};
    if (pass == Pass::data) std::swap(source_, target_);
    weights_ = by_taps(window, job_ ? memory::data_type::bf16 : memory::data_type::f32);
    // Of short lines most windows reach over an edge.
    constexpr int64_t few = 14;
    if (job_ && job_->columns < few && window.plane().scratch() <= most_scratch)
        lines_ = window.plane();
    if (job_) zeros_.assign(static_cast<size_t>(job_->width * channels_), 0);
}

void Depthwise::run_job(const memory& source, const memory& weights, const End& end,
                        const memory& target) const {
    DepthwiseJob job = *job_;
    job.images = values_of<uint16_t>(source), job.to = values_of<uint16_t>(target);
    job.weights = values_of<uint16_t>(weights), job.zeros = zeros_.data();
    job.bias = end.bias, job.adds = end.adds;
    job.end = end.relu ? *LoopEnding::of(true, {}) : end.function;
    if (lines_) return run_lines(job);
    parallel(images_ * job.rows, job.columns * job.channels * job.side * job.side,
             [=](int64_t begin, int64_t stop) { depthwise_rows(job, begin, stop); });
}

void Depthwise::run_lines(const DepthwiseJob& windows) const {
    ExpandedJob job{};
    static_cast<PlaneWindow&>(job) = *lines_;
    job.inputs = channels_, job.images = windows.images, job.windows = windows;
    const int64_t strips = (channels_ + ExpandedJob::strip - 1) / ExpandedJob::strip;
    over_planes(job, {images_, strips}, 2 * job.side * job.side,
                [=](int64_t plane, int64_t begin, int64_t stop, float* scratch) {
                    expanded_rows(job, plane, begin, stop, scratch);
                });
}

void Depthwise::run(const memory& source, const memory& weights, const End& end,
                    const memory& target) const {
    if (job_) return run_job(source, weights, end, target);
    const auto* x = values_of<BFloat16>(source);
    const auto* w = values_of<float>(weights);
    auto* y = values_of<BFloat16>(target);
    const int64_t taps = rows_.taps * columns_.taps;
    parallel(
        images_ * rows_.target, columns_.target * channels_ * taps,
        [&](int64_t begin, int64_t stop) {
            std::vector<const BFloat16*> values(static_cast<size_t>(taps));
            std::vector<const float*> factors(static_cast<size_t>(taps));
            Sum sum{values.data(), factors.data(), 0, end.bias, end.adds, end.relu};
            for (int64_t row = begin; row < stop; ++row) {
                const auto& down = rows_.meetings[static_cast<size_t>(row % rows_.target)];
                const BFloat16* image =
                    x + row / rows_.target * rows_.source * columns_.source * channels_;
                for (int64_t column = 0; column < columns_.target; ++column) {
                    size_t n = 0;
                    for (const Meeting& i : down)
                        for (const Meeting& j : columns_.meetings[static_cast<size_t>(column)]) {
                            values[n] = image + (i.from * columns_.source + j.from) * channels_;
                            factors[n++] = w + (i.tap * columns_.taps + j.tap) * channels_;
                        }
                    sum.terms = static_cast<int64_t>(n);
                    sum_pixel(sum, channels_, y + (row * columns_.target + column) * channels_);
                }
            }
        });
}

// The sums of some channels of an image: a row of them a tap, then one for the bias.
void Depthwise::learn_strip(const BFloat16* x, const BFloat16* dy, int64_t width, bool with_bias,
                            float* sums) const {
    const int64_t taps = rows_.taps * columns_.taps;
    for (int64_t row = 0; row < rows_.target; ++row) {
        const BFloat16* slopes = dy + row * columns_.target * channels_;
        for (const Meeting& i : rows_.meetings[static_cast<size_t>(row)])
            for (int64_t tap = 0; tap < columns_.taps; ++tap) {
                const Run& run = columns_.runs[static_cast<size_t>(tap)];
                const Pairs pairs{x + (i.from * columns_.source + run.from) * channels_,
                                  slopes + run.place * channels_, run.count,
                                  columns_.step * channels_, channels_};
                multiply_pairs(pairs, width, sums + (i.tap * columns_.taps + tap) * channels_);
            }
        if (with_bias)
            add_slopes({nullptr, slopes, columns_.target, 0, channels_}, width,
                       sums + taps * channels_);
    }
}

// Each image has sums of its own, which are added in order, whatever thread computed them.
void Depthwise::learn(const memory& source, const memory& slopes, const memory& weights,
                      const memory& bias) const {
    const auto *x = values_of<BFloat16>(source), *dy = values_of<BFloat16>(slopes);
    const bool with_bias = bias.get(true) != nullptr;
    const int64_t strips = (channels_ + most - 1) / most, taps = rows_.taps * columns_.taps;
    const int64_t each = (with_bias ? taps + 1 : taps) * channels_;
    const int64_t in = rows_.source * columns_.source * channels_;
    const int64_t out = rows_.target * columns_.target * channels_;
    std::vector<float> sums(static_cast<size_t>(images_ * each), 0.0F);
    parallel(images_ * strips, out / strips * taps, [&](int64_t begin, int64_t stop) {
        for (int64_t item = begin; item < stop; ++item) {
            const int64_t image = item / strips, first = item % strips * most;
            learn_strip(x + image * in + first, dy + image * out + first,
                        std::min(most, channels_ - first), with_bias,
                        sums.data() + image * each + first);
        }
    });
    for (int64_t i = 0; i < each; ++i) {
        double total = 0;
        for (int64_t n = 0; n < images_; ++n)
            total += static_cast<double>(sums[static_cast<size_t>(n * each + i)]);
        const int64_t beyond = i - taps * channels_;
        float* to = beyond < 0 ? values_of<float>(weights) + i : values_of<float>(bias) + beyond;
        *to = static_cast<float>(total);
    }
}

}  // namespace sn
