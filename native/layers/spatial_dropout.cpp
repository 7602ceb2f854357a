// Drops whole channels of an image in TRAIN and scales the rest (ENet: spatial_dropout_layer.cpp).
#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
class SpatialDropout final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        train_ = layer.options.flag("train");
        scale_ = static_cast<float>(layer.options.real("scale"));
        bound_ = static_cast<uint64_t>(layer.options.real("ratio") * 0x1p40);
        const Shape& in = layer.shape();
        planes_ = in[0] * in[1];
        area_ = planes_ == 0 ? 0 : layer.bottoms[0]->count() / planes_;
    }

    void forward(Layer& layer) override {
        if (train_) draw_ = layer.random.draw();
        if (is_nothing(layer)) return;
        const float* from = layer.bottom();
        pass(from, layer.top());
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }
    bool leaves_signs(const Layer&) const override { return true; }

    void backward(Layer& layer) override {
        if (!layer.propagate[0] || is_nothing(layer)) return;
        const float* from = layer.top_diff();
        pass(from, layer.bottom_diff());
    }

   private:
    bool is_nothing(const Layer& layer) const {
        return !train_ && scale_ == 1.0F && layer.in_place();
    }

    // What is kept follows from the draw and the channel's number: no mask is stored.
    void pass(const float* from, float* to) const {
        const auto draw = draw_;
        const auto bound = bound_;
        const bool drops = train_;
        const float scale = scale_;
        const int64_t area = area_;
        parallel(
            planes_,
            [=](int64_t begin, int64_t end) {
                for (int64_t p = begin; p < end; ++p) {
                    const bool kept = !drops || draw.bits(static_cast<uint64_t>(p)) >> 24 >= bound;
                    const float by = kept ? scale : 0.0F;
                    for (int64_t i = p * area; i < (p + 1) * area; ++i) to[i] = from[i] * by;
                }
            },
            area);
    }

    bool train_ = false;
    float scale_ = 1;
    uint64_t bound_ = 0;
    int64_t planes_ = 0, area_ = 0;
    Random::Draw draw_{0};
};
}  // namespace

std::unique_ptr<Kernel> make_spatial_dropout() {
    return make<SpatialDropout>();
}

}  // namespace sn
