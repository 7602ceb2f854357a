// In-place layers that the layer before them computes too: a ReLU after a sum,
// Scale and ReLU after BatchNorm.
#include "fusions.hpp"

namespace sn {

namespace {
// Whether a layer works in place on the output of the one before it, and on nothing else.
bool follows(const Layer& before, const Layer& layer) {
    return continues(before, layer) && layer.in_place() && layer.backward == before.backward;
}

// A slope below zero would lose the sign that the gradient needs.
bool keeps_sign(const Layer& layer) {
    const auto slope = layer.kernel->relu_slope(layer);
    return slope && *slope >= 0.0F;
}
}  // namespace

void Net::fuse_train(Layer& head, bool scale_too) {
    Layer* last = &head;
    Layer* scale = scale_too ? next(head) : nullptr;
    if (scale && scale->kernel->scales_channels(*scale) && follows(head, *scale))
        head.fused_scale = last = scale, join(head, *scale);
    Layer* relu = next(*last);
    if (relu && keeps_sign(*relu) && follows(*last, *relu))
        head.fused_relu = relu, join(head, *relu);
}

}  // namespace sn
