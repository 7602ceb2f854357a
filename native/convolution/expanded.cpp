#include "expanded.hpp"

#include "../engine/bfloat16.hpp"
#include "../engine/net.hpp"

namespace sn {

using dnnl::memory;

namespace {
bool are(const std::vector<int64_t>& values, int64_t wanted) {
    return values.size() == 2 && values[0] == wanted && values[1] == wanted;
}

bool is_inference(const Layer& layer) {
    return !layer.has_gradients() && !layer.int8 && layer.bottoms.size() == 1 &&
           layer.shape().size() == 4 && layer.options.integer("axis") == 1 && !layer.fused_sum;
}

bool multiplies_pixels(const Layer& layer) {
    const Options& options = layer.options;
    return options.integer("group") == 1 && are(options.integers("kernel"), 1) &&
           are(options.integers("stride"), 1) && are(options.integers("pad"), 0);
}

std::optional<LoopEnding> ending_of(const Layer& layer) {
    return LoopEnding::of(layer.fused_relu != nullptr, layer.fused_ending);
}
}  // namespace

bool Expanded::has_shape(const Layer& layer, const Layer& product) {
    if (!is_inference(layer) || !is_inference(product) || !multiplies_pixels(layer) ||
        !is_depthwise(product) || product.options.integers("kernel").size() != 2 ||
        !ending_of(layer) || !ending_of(product) || layer.bottoms[0]->count() == 0 ||
        product.tops[0]->count() == 0)
        return false;
    // Of few pixels oneDNN's products of pixels take less time by more than is won.
    constexpr int64_t few = 10 * 10;
    return layer.shape()[2] * layer.shape()[3] >= few && layer.shape()[3] > 1;
}

bool Expanded::suits(const Layer& layer, const Layer& product) {
    if (layer.net->factors != memory::data_type::f32 || !has_shape(layer, product)) return false;
    return DepthwisePlanes::suits(product, Window(product, false, true), true);
}

Expanded::Expanded(const Layer& layer, const Window& window)
    : planes_(*layer.fused_product, Window(*layer.fused_product, false, true), true),
      source_(window.source, memory::data_type::f32, memory::format_tag::nChw16c),
      rows_(window.plain_weights),
      window_rows_(Window(*layer.fused_product, false, true).plain_weights),
      packed_(window.weights, memory::data_type::f32, memory::format_tag::Oihw16o) {
    points_.channels = window.source[1], points_.end = *ending_of(layer);
}

void Expanded::run(const Layer& layer) {
    const Layer& product = *layer.fused_product;
    weights_.follow(layer), window_weights_.follow(product);
    const memory packed = weights_.weights(layer, packed_, rows_);
    const memory windows = window_weights_.weights(product, planes_.weights(), window_rows_);
    DepthwisePoints points = points_;
    points.weights = values_of<float>(packed), points.bias = weights_.bias();
    planes_.run(layer.bottoms[0]->data.read(source_), points, windows,
                {window_weights_.bias(), false, false},
                layer.fused_last->tops[0]->data.write(planes_.target()));
    weights_.drop_unkept(), window_weights_.drop_unkept();
}

}  // namespace sn
