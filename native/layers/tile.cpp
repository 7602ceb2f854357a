// Copies of a blob side by side along an axis (Caffe: tile_layer.cpp).
#include "../engine/layer.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class Tile final : public Kernel {
   public:
    std::optional<Strided> moves(const Layer& layer, const Blob&) const override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        const int64_t outer = count(layer.shape(), 0, axis);
        const int64_t inner = count(layer.shape(), axis, layer.shape().size());
        return Strided{0, {{outer, inner}, {layer.options.integer("tiles"), 0}, {inner, 1}}, 1};
    }

    void reshape(Layer& layer) override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        tiles_ = layer.options.integer("tiles");
        outer_ = count(layer.shape(), 0, axis);
        inner_ = count(layer.shape(), axis, layer.shape().size());
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        const int64_t tiles = tiles_, inner = inner_;
        parallel(
            outer_ * tiles_,
            [=](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r)
                    std::copy_n(x + r / tiles * inner, inner, y + r * inner);
            },
            inner_);
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        const int64_t tiles = tiles_, inner = inner_;
        parallel(
            outer_,
            [=](int64_t begin, int64_t end) {
                for (int64_t o = begin; o < end; ++o) {
                    float* sum = dx + o * inner;
                    std::copy_n(dy + o * tiles * inner, inner, sum);
                    for (int64_t t = 1; t < tiles; ++t) {
                        const float* more = dy + (o * tiles + t) * inner;
                        for (int64_t i = 0; i < inner; ++i) sum[i] += more[i];
                    }
                }
            },
            inner_ * tiles_);
    }

   private:
    int64_t tiles_ = 1, outer_ = 0, inner_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_tile() {
    return make<Tile>();
}

}  // namespace sn
