// Convolutions and deconvolutions: products of weights and patches that are gathered on the way.
//
// Of two images one is large, from which patches are read or into which they are added: the source
// of a convolution, the target of a deconvolution.  The other one is small: a value for each patch.
#include "functions.hpp"
#include "products.hpp"

namespace dnnl {

namespace {
using portable::Range;

struct Window {
    static constexpr size_t axes = 3;
    int64_t images = 0, groups = 1;
    // Channels of a group in the small and in the large images, and places in those.
    int64_t few = 0, many = 0, places = 1, plane = 1, taps = 1;
    int64_t large[axes] = {1, 1, 1}, small[axes] = {1, 1, 1}, kernel[axes] = {1, 1, 1};
    int64_t stride[axes] = {1, 1, 1}, dilation[axes] = {1, 1, 1}, pad[axes] = {0, 0, 0};

    // A patch has a row for each channel and tap, and columns are places of all images.
    int64_t rows() const { return many * taps; }
    int64_t columns() const { return images * places; }

    // Calls body(offset in the large image or -1, number) for these columns of a row, with runs of
    // neighbours at once: body(at, step, count, column).
    template <class F>
    void walk(int64_t row, Range range, F&& body) const {
        const int64_t channel = row / taps;
        int64_t tap = row % taps, shift[axes];
        for (size_t i = axes; i-- > 0;) {
            shift[i] = tap % kernel[i] * dilation[i] - pad[i];
            tap /= kernel[i];
        }
        for (int64_t column = range.begin; column < range.end;) {
            int64_t rest = column % places, at = column / places * groups * many + channel;
            const int64_t x = rest % small[2];
            rest /= small[2];
            const int64_t y = rest % small[1] * stride[1] + shift[1];
            const int64_t z = rest / small[1] * stride[0] + shift[0];
            const int64_t count = std::min(range.end - column, small[2] - x);
            const bool inside = 0 <= z && z < large[0] && 0 <= y && y < large[1];
            // The places whose value lies inside, of this line.
            const int64_t first = x * stride[2] + shift[2];
            int64_t begin = first < 0 ? (-first + stride[2] - 1) / stride[2] : 0;
            int64_t end = first < large[2] ? (large[2] - first + stride[2] - 1) / stride[2] : 0;
            begin = std::min(begin, count), end = std::max(begin, std::min(end, count));
            if (!inside) begin = end = 0;
            at = ((at * large[0] + z) * large[1] + y) * large[2] + first;
            body(at, begin, end, count, column - range.begin);
            column += count;
        }
    }

    void gather(const float* values, int64_t row, Range range, float* to) const {
        walk(row, range,
             [=](int64_t at, int64_t begin, int64_t end, int64_t count, int64_t column) {
                 float* line = to + column;
                 std::fill(line, line + begin, 0.0F);
                 for (int64_t i = begin; i < end; ++i) line[i] = values[at + i * stride[2]];
                 std::fill(line + end, line + count, 0.0F);
             });
    }

    void spread(const float* from, int64_t row, Range range, float* values) const {
        walk(row, range, [=](int64_t at, int64_t begin, int64_t end, int64_t, int64_t column) {
            for (int64_t i = begin; i < end; ++i) values[at + i * stride[2]] += from[column + i];
        });
    }

    // Where a value of the small images is, from the first channel of its group on.
    int64_t place(int64_t channel, int64_t column) const {
        return (column / places * groups * few + channel) * places + column % places;
    }

    // The same as a row: for each column one value.
    void line(const float* values, int64_t channel, Range range, float* to) const {
        for (int64_t column = range.begin; column < range.end;) {
            const int64_t count = std::min(range.end - column, places - column % places);
            std::copy_n(values + place(channel, column), count, to);
            column += count, to += count;
        }
    }

    const float* of_group(const float* values, int64_t group) const {
        return values + group * few * places;
    }
};

// A description in rows, which whoever leaves the choice gets.
bool settle(memory::desc& of, memory::data_type type) {
    if (of.get_data_type() != type) return false;
    if (!of.is_any()) return of.is_dense();
    memory::dims sizes = of.get_dims(), strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
    of = {sizes, type, strides};
    return true;
}

// The weights (group, outputs, inputs, taps…): in Caffe's order, with the channels of the small
// images outside.
bool settle_weights(memory::desc& of, bool reverse, bool grouped) {
    const bool any = of.is_any();
    memory::desc made = of;
    if (any && !settle(made, memory::data_type::f32)) return false;
    memory::dims sizes = of.get_dims(), strides(sizes.size(), 1);
    const size_t first = grouped ? 1 : 0;
    std::vector<size_t> order(sizes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (reverse) std::swap(order[first], order[first + 1]);
    for (size_t i = order.size(); i-- > 1;)
        strides[order[i - 1]] = strides[order[i]] * sizes[order[i]];
    made = {sizes, memory::data_type::f32, strides};
    const bool fits = any || of == made;
    of = made;
    return fits;
}

// What a convolution is, if there are loops for it: descriptions that were left open are set.
template <bool reverse>
std::shared_ptr<const Window> window_of(description& of, const memory::dims& strides,
                                        const memory::dims& dilations, const memory::dims& before) {
    const bool grouped = of.weights.axes() > of.src.axes();
    const auto floats = memory::data_type::f32;
    if (!settle(of.src, floats) || !settle(of.dst, floats) ||
        !settle_weights(of.weights, reverse, grouped) || strides.size() > Window::axes)
        return nullptr;
    auto made = std::make_shared<Window>();
    const auto &large = (reverse ? of.dst : of.src).sizes(),
               &small = (reverse ? of.src : of.dst).sizes();
    const auto& weights = of.weights.sizes();
    const size_t first = grouped ? 3 : 2, skipped = Window::axes - strides.size();
    made->images = small[0], made->groups = grouped ? weights[0] : 1;
    made->few = small[1] / made->groups, made->many = large[1] / made->groups;
    for (size_t i = 0; i < strides.size(); ++i) {
        const size_t at = i + skipped;
        made->large[at] = large[i + 2], made->small[at] = small[i + 2];
        made->kernel[at] = weights[first + i], made->stride[at] = strides[i];
        made->dilation[at] = dilations[i] + 1, made->pad[at] = before[i];
        made->places *= small[i + 2], made->plane *= large[i + 2], made->taps *= weights[first + i];
    }
    return made;
}

// small = weights patches(large), plus a bias, and what follows.
void gather_sums(const Window& window, const float* large, const float* weights, const float* bias,
                 float* small, const primitive_attr& with, const Operands& operands) {
    const int64_t rows = window.rows(), few = window.few;
    const int64_t parts =
        (window.columns() + portable::block_columns - 1) / portable::block_columns;
    sn::parallel(
        window.groups * parts,
        [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t group = i / parts, first = i % parts * portable::block_columns;
                const float* images = large + group * window.many * window.plane;
                const portable::Strided left{weights + group * few * rows, rows, 1};
                float* to = small + group * few * window.places;
                const Range columns{first,
                                    std::min(window.columns(), first + portable::block_columns)};
                portable::multiply<true>(
                    {0, few}, columns, rows, 1, left,
                    [&](int64_t row, Range range, float* line) {
                        window.gather(images, row, range, line);
                    },
                    to, [&](int64_t row, int64_t column) { return window.place(row, column); },
                    adds(with));
            }
        },
        few * rows * portable::block_columns / 8);
    if (!bias && with.after.len() == 0) return;
    const int64_t places = window.places, channels = window.groups * few;
    sn::parallel(
        window.images * channels,
        [&](int64_t begin, int64_t end) {
            for (int64_t line = begin; line < end; ++line) {
                float* values = small + line * places;
                if (bias)
                    for (int64_t i = 0; i < places; ++i) values[i] += bias[line % channels];
                finish(with, operands, values, line * places, places);
            }
        },
        places * 4);
}

// large = the sums of all patches, which are the transposed weights times small.
void spread_sums(const Window& window, const float* small, const float* weights, float* large) {
    const int64_t rows = window.rows(), few = window.few, places = window.places;
    // Channels and images that one thread adds to at once.
    const int64_t channels = std::max<int64_t>(1, 256 / window.taps);
    const int64_t images = std::max<int64_t>(1, portable::block_columns / places);
    const int64_t down = (window.many + channels - 1) / channels;
    const int64_t across = (window.images + images - 1) / images;
    const auto part = [&](int64_t group, int64_t channel, int64_t image) {
        const int64_t last_image = std::min(window.images, image + images);
        const Range all{channel * window.taps,
                        std::min(window.many, channel + channels) * window.taps};
        float* to = large + group * window.many * window.plane;
        for (int64_t i = image; i < last_image; ++i)
            std::fill(to + (i * window.groups * window.many + channel) * window.plane,
                      to + (i * window.groups * window.many + all.end / window.taps) * window.plane,
                      0.0F);
        std::vector<float> patches(static_cast<size_t>(all.size() * portable::block_columns));
        const portable::Strided left{weights + group * few * rows, 1, rows};
        for (int64_t first = image * places; first < last_image * places;
             first += portable::block_columns) {
            const Range columns{first,
                                std::min(last_image * places, first + portable::block_columns)};
            portable::multiply<true>(
                all, columns, few, 1, left,
                [&](int64_t row, Range range, float* line) {
                    window.line(window.of_group(small, group), row, range, line);
                },
                patches.data(),
                [&](int64_t row, int64_t column) {
                    return (row - all.begin) * portable::block_columns + column - first;
                },
                false);
            for (int64_t row = all.begin; row < all.end; ++row)
                window.spread(patches.data() + (row - all.begin) * portable::block_columns, row,
                              columns, to);
        }
    };
    sn::parallel(
        window.groups * down * across,
        [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                part(i / across / down, i / across % down * channels, i % across * images);
        },
        channels * window.taps * few * images * places / 8);
}

// weights = small times the patches of large, summed over all places.
void learn_weights(const Window& window, const float* small, const float* large, float* weights) {
    const int64_t rows = window.rows(), few = window.few, columns = window.columns();
    constexpr int64_t wide = portable::block_columns;
    const int64_t parts = (rows + wide - 1) / wide;
    sn::parallel(
        window.groups * parts,
        [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t group = i / parts, first = i % parts * wide;
                const float* images = large + group * window.many * window.plane;
                portable::multiply<false>(
                    {0, few}, {first, std::min(rows, first + wide)}, columns, 1,
                    [&](int64_t row, Range range, float* line) {
                        window.line(window.of_group(small, group), row, range, line);
                    },
                    [&](int64_t row, Range range, float* line) {
                        window.gather(images, row, range, line);
                    },
                    weights + group * few * rows,
                    [=](int64_t row, int64_t column) { return row * rows + column; }, false);
            }
        },
        few * wide * columns / 8);
}

// The sums of all values of each channel.
void add_up(const float* values, int64_t images, int64_t channels, int64_t plane, float* sums) {
    for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t i = 0; i < images; ++i)
            for (int64_t k = 0; k < plane; ++k)
                sum += static_cast<double>(values[(i * channels + c) * plane + k]);
        sums[c] = static_cast<float>(sum);
    }
}

float* floats(const Operands& all, int name) {
    const memory found = operand(all, name);
    return found ? found.floats() : nullptr;
}
}  // namespace

template <bool reverse>
window_forward<reverse>::primitive_desc::primitive_desc(
    const engine&, prop_kind, algorithm, const memory::desc& from, const memory::desc& by,
    const memory::desc&, const memory::desc& to, const memory::dims& strides,
    const memory::dims& dilations, const memory::dims& before, const memory::dims&,
    const primitive_attr& with, bool or_none) {
    src = from, weights = by, dst = to;
    if (const auto window = window_of<reverse>(*this, strides, dilations, before))
        run = [=](const Operands& all) {
            const float* x = floats(all, DNNL_ARG_SRC);
            const float* factors = floats(all, DNNL_ARG_WEIGHTS);
            float* y = floats(all, DNNL_ARG_DST);
            if (reverse)
                spread_sums(*window, x, factors, y);
            else
                gather_sums(*window, x, factors, floats(all, DNNL_ARG_BIAS), y, with, all);
        };
    check(or_none);
}

template <bool reverse>
window_data<reverse>::primitive_desc::primitive_desc(
    const engine&, algorithm, const memory::desc& from, const memory::desc& by,
    const memory::desc& to, const memory::dims& strides, const memory::dims& dilations,
    const memory::dims& before, const memory::dims&, const description&, const primitive_attr& with,
    bool or_none) {
    src = from, weights = by, dst = to;
    if (const auto window = window_of<reverse>(*this, strides, dilations, before))
        run = [=](const Operands& all) {
            const float* dy = floats(all, DNNL_ARG_DIFF_DST);
            const float* factors = floats(all, DNNL_ARG_WEIGHTS);
            float* dx = floats(all, DNNL_ARG_DIFF_SRC);
            if (reverse)
                gather_sums(*window, dy, factors, nullptr, dx, with, all);
            else
                spread_sums(*window, dy, factors, dx);
        };
    check(or_none);
}

template <bool reverse>
window_weights<reverse>::primitive_desc::primitive_desc(
    const engine&, algorithm, const memory::desc& from, const memory::desc& by, const memory::desc&,
    const memory::desc& to, const memory::dims& strides, const memory::dims& dilations,
    const memory::dims& before, const memory::dims&, const description&, const primitive_attr&,
    bool or_none) {
    src = from, weights = by, dst = to;
    if (const auto window = window_of<reverse>(*this, strides, dilations, before))
        run = [=](const Operands& all) {
            const float *x = floats(all, DNNL_ARG_SRC), *dy = floats(all, DNNL_ARG_DIFF_DST);
            float *dw = floats(all, DNNL_ARG_DIFF_WEIGHTS), *db = floats(all, DNNL_ARG_DIFF_BIAS);
            learn_weights(*window, reverse ? x : dy, reverse ? dy : x, dw);
            if (!db) return;
            const int64_t channels = window->groups * (reverse ? window->many : window->few);
            add_up(dy, window->images, channels, reverse ? window->plane : window->places, db);
        };
    check(or_none);
}

template struct window_forward<false>;
template struct window_forward<true>;
template struct window_data<false>;
template struct window_data<true>;
template struct window_weights<false>;
template struct window_weights<true>;

}  // namespace dnnl
