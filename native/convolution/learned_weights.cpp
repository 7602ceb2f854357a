#include "learned_weights.hpp"

#include <algorithm>

#include "../engine/instructions.hpp"
#include "../engine/net.hpp"
#include "../engine/parallel.hpp"

namespace sn {

using dnnl::memory;

namespace {
constexpr int64_t step = WeightJob::step;

int64_t round_up(int64_t value, int64_t to) {
    return (value + to - 1) / to * to;
}

bool all_are(const memory::dims& dims, int64_t value) {
    return std::all_of(dims.begin(), dims.end(), [=](int64_t dim) { return dim == value; });
}

bool is_point(const Window& window) {
    return window.weights[2] == 1 && window.weights[3] == 1;
}

// Of `all` parts, those that are packed at once: as many numbers as stay in the caches, but no
// fewer steps than the sums are worth, which are read and written each time.
int64_t parts_at_once(int64_t all, int64_t steps, int64_t numbers) {
    constexpr int64_t cached = int64_t{1} << 19, least_alone = 16, least_together = 64;
    const int64_t least = steps > 1 ? least_together / steps : least_alone;
    const int64_t most = std::max({int64_t{1}, least, cached / numbers});
    const int64_t times = (all + most - 1) / most;
    return (all + times - 1) / times;
}

bool suits(const Window& window) {
    if (!has_amx() || window.factors != memory::data_type::bf16 || window.bias ||
        window.source.size() != 4 || window.weights.size() != 4)
        return false;
    if (window.source[1] % step > 0 || window.outputs % step > 0) return false;
    if (is_point(window)) return all_are(window.before, 0) && all_are(window.after, 0);
    return window.weights[2] * window.weights[3] <= WeightJob::most_taps &&
           all_are(window.strides, 1) && all_are(window.dilations, 0);
}
}  // namespace

std::unique_ptr<LearnedWeights> LearnedWeights::make(const Window& window) {
    if (!suits(window)) return nullptr;
    return std::unique_ptr<LearnedWeights>(new LearnedWeights(window));
}

LearnedWeights::LearnedWeights(const Window& window) {
    constexpr auto last = memory::format_tag::nhwc;
    source_ = {window.source, window.factors, last};
    slopes_ = {window.target, window.factors, last};
    const auto describe = [](WeightImages& images, const memory::dims& dims) {
        images.images = dims[0], images.channels = dims[1], images.rows = dims[2] * dims[3];
    };
    describe(job_.source, window.source);
    describe(job_.slopes, window.target);
    if (is_point(window))
        walk_points(window);
    else
        walk_windows(window);
    job_.source.at = source_at_.data(), job_.slopes.at = slopes_at_.data();
    job_.source.places = static_cast<int64_t>(source_at_.size());
    job_.slopes.places = static_cast<int64_t>(slopes_at_.size());
    job_.taps = static_cast<int64_t>(shifts_.size()), job_.shifts = shifts_.data();
}

// Places follow each other through all images.
void LearnedWeights::walk_points(const Window& window) {
    for (int64_t y = 0; y < window.target[2]; ++y)
        for (int64_t x = 0; x < window.target[3]; ++x) {
            const int64_t from = y * window.strides[0] * window.source[3] + x * window.strides[1];
            slopes_at_.push_back(static_cast<int32_t>(slopes_at_.size()));
            source_at_.push_back(static_cast<int32_t>(from));
        }
    shifts_ = {0};
}

// Rows of places are as wide as what windows reach: there a tap always lies as far away.
void LearnedWeights::walk_windows(const Window& window) {
    const int64_t down = window.weights[2], across = window.weights[3];
    const int64_t rows = window.target[2], columns = window.target[3], line = columns + across - 1;
    for (int64_t y = 0; y < down; ++y)
        for (int64_t x = 0; x < across; ++x) shifts_.push_back(y * line + x);
    for (int64_t y = 0; y < rows; ++y)
        for (int64_t x = 0; x < line; ++x)
            slopes_at_.push_back(static_cast<int32_t>(x < columns ? y * columns + x : -1));
    for (int64_t y = -window.before[0]; y < rows + down - 1 - window.before[0]; ++y)
        for (int64_t x = -window.before[1]; x < line - window.before[1]; ++x) {
            const bool inside = y >= 0 && y < window.source[2] && x >= 0 && x < window.source[3];
            source_at_.push_back(static_cast<int32_t>(inside ? y * window.source[3] + x : -1));
        }
    const int64_t places = round_up(rows * line, step);
    slopes_at_.resize(static_cast<size_t>(places), -1);
    job_.steps = places / step;
    job_.pairs = (places + shifts_.back()) / 2 + 1;
    source_at_.resize(static_cast<size_t>(job_.pairs * 2), -1);
}

// Of all images.
int64_t LearnedWeights::steps() const {
    return round_up(job_.slopes.images * job_.slopes.places, step) / step;
}

void LearnedWeights::run(const memory& source, const memory& slopes, float* rows, bool adds) const {
    WeightJob job = job_;
    job.source.values = values_of<BFloat16>(source),
    job.slopes.values = values_of<BFloat16>(slopes);
    const int64_t inputs = job.source.channels, outputs = job.slopes.channels;
    const bool points = job.taps == 1;
    const int64_t all = points ? steps() : job.slopes.images, copies = points ? 1 : 2;
    // A part is a step, or an image.
    const int64_t part_steps = points ? 1 : job.steps;
    const int64_t part_pairs = points ? step / 2 : job.pairs;
    const int64_t slopes_size = part_steps * step * outputs;
    const int64_t source_size = part_pairs * 2 * inputs * copies;
    const int64_t parts = parts_at_once(all, part_steps, slopes_size + source_size);
    const auto room = pages().take(static_cast<size_t>((slopes_size + source_size) * parts * 2));
    auto* values = reinterpret_cast<BFloat16*>(room.get());
    for (int64_t first = 0; first < all; first += parts, adds = true) {
        const int64_t now = std::min(parts, all - first);
        const int64_t to_steps = now * part_steps, to_pairs = now * part_pairs;
        if (points) job.steps = now, job.pairs = to_pairs;
        const WeightPanels panels{values, values + slopes_size * now, points ? 1 : now, to_steps,
                                  to_pairs};
        parallel(to_steps, step * outputs, [=](int64_t begin, int64_t end) {
            pack_slopes(job, panels, first * part_steps, begin, end);
        });
        parallel(to_pairs, 2 * inputs, [=](int64_t begin, int64_t end) {
            pack_source(job, panels, first * part_pairs, begin, end);
        });
        parallel(outputs / step * (inputs / step), to_steps * job.taps * step * step,
                 [=](int64_t begin, int64_t end) {
                     multiply_panels(job, panels, adds, rows, begin, end);
                 });
    }
}

}  // namespace sn
