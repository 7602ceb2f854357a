// The patches under a sliding window, laid out as channels (Caffe: im2col_layer.cpp).
#include <algorithm>

#include "../engine/layer.hpp"
#include "../engine/patches.hpp"

namespace sn {

namespace {
class Im2col final : public LinearKernel {
   public:
    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        const Shape &in = layer.shape(), &out = layer.tops[0]->shape();
        const auto axis = static_cast<size_t>(options.integer("axis"));
        const auto spatial = static_cast<long>(axis) + 1;
        num_ = count(in, 0, axis);
        patches_.channels = in[axis];
        patches_.sizes = {in.begin() + spatial, in.end()};
        patches_.outputs = {out.begin() + spatial, out.end()};
        patches_.kernel = options.integers("kernel");
        patches_.stride = options.integers("stride");
        patches_.pad = options.integers("pad");
        patches_.dilation = options.integers("dilation");
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        for (int64_t n = 0; n < num_ && layer.tops[0]->count() > 0; ++n)
            patches_.spread(x + n * patches_.inputs(),
                            y + n * patches_.rows() * patches_.columns());
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        std::fill(dx, dx + layer.bottoms[0]->count(), 0.0F);
        for (int64_t n = 0; n < num_ && layer.tops[0]->count() > 0; ++n)
            patches_.gather(dy + n * patches_.rows() * patches_.columns(),
                            dx + n * patches_.inputs());
    }

   private:
    int64_t num_ = 0;
    Patches patches_;
};
}  // namespace

REGISTER_LAYER(Im2col, Im2col);

}  // namespace sn
