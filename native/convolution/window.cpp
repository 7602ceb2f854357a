#include "window.hpp"

#include <algorithm>

#include "../engine/channels.hpp"
#include "../engine/instructions.hpp"
#include "../engine/net.hpp"
#include "winograd.hpp"

namespace sn {

using dnnl::memory;

namespace {
// Whether, along one axis, some tap lies outside wherever the window is put: a window of taps
// `dilation` apart, put `places` times every `stride` values, over `size` values after the padding.
bool is_idle(int64_t taps, int64_t dilation, int64_t places, int64_t stride, int64_t size,
             int64_t pad) {
    for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t first = tap * dilation - pad;
        const int64_t place = first < 0 ? (stride - 1 - first) / stride : 0;
        if (place >= places || first + place * stride >= size) return true;
    }
    return false;
}
// The few channels of a picture are read in the layout that they have.
constexpr int64_t picture = 4;
// Whether products in bfloat16 take longer than in float32 when such a convolution learns: pairs of
// values from one or a few channels are put together one by one (docs/performance.md).  AMX was not
// measured.
bool loses_time(int64_t channels, int64_t window) {
    return !has_amx() && window > 1 && (channels == 1 || (channels < 4 && channels * window < 75));
}
}  // namespace

Window::Window(const Layer& layer, bool reverse, bool fused) {
    const Options& options = layer.options;
    const Shape& in = layer.bottoms[0]->shape();
    const Shape& out = layer.tops[0]->shape();
    const auto axis = static_cast<size_t>(options.integer("axis"));
    const int64_t group = options.integer("group"), outer = count(in, 0, axis);
    auto kernel = options.integers("kernel"), stride = options.integers("stride");
    auto pad = options.integers("pad"), dilation = options.integers("dilation");
    outputs = options.integer("num_output");
    depthwise = is_depthwise(layer);
    learns_depthwise = depthwise && !reverse && layer.has_gradients() && kernel.size() == 2;
    const bool wide = depthwise && (reverse || (layer.has_gradients() && !learns_depthwise));
    factors = wide ? memory::data_type::f32 : layer.net->factors;
    source = {outer, in[axis]};
    target = {outer, outputs};
    source.insert(source.end(), in.begin() + static_cast<long>(axis) + 1, in.end());
    target.insert(target.end(), out.begin() + static_cast<long>(axis) + 1, out.end());
    if (kernel.empty()) {  // no spatial axes: a window of one value
        source.push_back(1), target.push_back(1);
        kernel = stride = dilation = {1}, pad = {0};
    }
    // Of pixels that are skipped on either side nothing is seen here: the others are neighbours.
    const int64_t in_every = fused ? layer.bottom_every : 1;
    const int64_t out_every = fused ? layer.top_every : 1;
    for (size_t i = 0; i < kernel.size(); ++i) {
        source[i + 2] = (source[i + 2] + in_every - 1) / in_every;
        target[i + 2] = (target[i + 2] + out_every - 1) / out_every;
        stride[i] = stride[i] * out_every / in_every;
    }
    strides = stride;
    before = pad;
    bool is_partly_idle = false;
    for (size_t i = 0; i < kernel.size(); ++i) {
        dilations.push_back(dilation[i] - 1);
        // Caffe's truncating division may need more zeros at the end than `pad` names.
        const int64_t extent = dilation[i] * (kernel[i] - 1) + 1;
        const int64_t need = (target[i + 2] - 1) * stride[i] + extent - source[i + 2] - pad[i];
        after.push_back(reverse ? pad[i] : std::max(pad[i], need));
        const auto &few = reverse ? source : target, &many = reverse ? target : source;
        is_partly_idle = is_partly_idle || is_idle(kernel[i], dilation[i], few[i + 2], stride[i],
                                                   many[i + 2], pad[i]);
    }
    // In bfloat16 oneDNN leaves the gradients of such taps uninitialised.
    if (is_partly_idle) factors = memory::data_type::f32;
    const bool learns_windows =
        !reverse && group == 1 && kernel.size() == 2 && layer.has_gradients();
    if (learns_windows && loses_time(in[axis], kernel[0] * kernel[1]))
        factors = memory::data_type::f32;
    const int64_t rows = outputs / group, columns = in[axis] / group;
    weights = {group, rows, columns};
    weights.insert(weights.end(), kernel.begin(), kernel.end());
    // Caffe keeps (outputs, inputs / group, …); for Deconvolution (inputs, outputs / group, …).
    int64_t area = 1;
    for (int64_t size : kernel) area *= size;
    memory::dims steps = {rows * columns * area, columns * area, area};
    if (reverse) steps[1] = area, steps[2] = rows * area;
    for (size_t i = 0; i < kernel.size(); ++i) {
        area /= kernel[i];
        steps.push_back(area);
    }
    if (group == 1) weights.erase(weights.begin()), steps.erase(steps.begin());
    is_line = kernel.size() == 1;
    is_turned = !reverse && in_every == 1 && out_every == 1 && gains_by_turning(layer);
    if (is_turned) turn(steps);
    plain_weights = {weights, memory::data_type::f32, steps};
    is_image = !reverse && source.size() == 4;
    few_products = options.flag("few_products", false);
    if (learns_windows && factors == memory::data_type::bf16 && winograd_loses_in_bf16(*this))
        factors = memory::data_type::f32;
    is_plane = is_image && (depthwise || factors == memory::data_type::f32);
    may_be_last = is_plane && source[1] > picture;
    bias = options.flag("bias_term");
    plain_bias = {{outputs}, memory::data_type::f32, memory::format_tag::x};
}

// oneDNN multiplies neighbours of a row at once, and of lines it has no loops for windows of one
// channel.
bool Window::gains_by_turning(const Layer& layer) const {
    if (layer.int8 || (layer.net->narrow() && source[1] <= picture)) return false;
    if (is_line) return depthwise;
    const auto rows = source[source.size() - 2], taps = weights[weights.size() - 2];
    return source.size() == 4 && rows > 1 && taps > 1 && source.back() == 1 && target.back() == 1;
}

void Window::turn(memory::dims& steps) {
    const auto turn = [&](memory::dims& of, int64_t one) {
        if (is_line)
            of.insert(of.end() - 1, one);
        else
            std::iter_swap(of.end() - 2, of.end() - 1);
    };
    for (auto* of : {&source, &target, &weights, &strides}) turn(*of, 1);
    for (auto* of : {&dilations, &before, &after}) turn(*of, 0);
    turn(steps, weights.back());
}

memory::desc Window::by_axes(const memory::desc& images) const {
    const int64_t block = is_turned ? layouts::block_of(images) : 0;
    if (block == 0) return images;
    auto dims = images.get_dims();
    const auto known = *layouts::family(is_line ? 3 : 4);
    const auto tag = block == dims[1] ? known.last
                     : block == 16    ? known.by16
                     : block == 8     ? known.by8
                                      : known.by4;
    if (is_line)
        dims.erase(dims.end() - 2);
    else
        std::swap(dims[2], dims[3]);
    return {dims, images.get_data_type(), tag};
}

PlaneWindow Window::plane() const {
    PlaneWindow made{};
    made.height = source[2], made.width = source[3];
    made.rows = target[2], made.columns = target[3], made.side = weights.back();
    made.stride_y = strides[0], made.stride_x = strides[1];
    made.pad_y = before[0], made.pad_x = before[1];
    made.dilation_y = dilations[0] + 1, made.dilation_x = dilations[1] + 1;
    return made;
}

}  // namespace sn
