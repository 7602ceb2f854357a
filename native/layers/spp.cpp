// Poolings of 1, 4, 16 … bins, laid one after the other (Caffe: spp_layer.cpp).
#include <algorithm>

#include "../engine/parallel.hpp"
#include "plane_pool.hpp"

namespace sn {

namespace {
class SPP final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const int64_t levels = layer.options.integer("levels");
        channels_ = layer.shape()[1];
        levels_.clear();
        bins_ = 0;
        bool picks = false;
        for (int64_t i = 0; i < levels; ++i) {
            const std::string prefix = "levels." + std::to_string(i) + ".";
            const auto output = layer.options.integers(prefix + "output");
            levels_.push_back({PlanePool(layer, prefix, output[0], output[1]), bins_ * channels_});
            bins_ += levels_.back().pool.outputs();
            picks = levels_.back().pool.picks();
        }
        picked_.assign(picks && layer.backward ? static_cast<size_t>(layer.tops[0]->count()) : 0,
                       -1);
    }

    void forward(Layer& layer) override {
        const float* in = layer.bottom();
        float* out = layer.top();
        const auto draw = layer.random.draw();
        planes(layer, [&](const PlanePool& pool, int64_t from, int64_t at) {
            pool.forward(in + from, out + at, picked_.empty() ? nullptr : picked_.data() + at, draw,
                         at);
        });
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float *in = layer.bottom(), *dout = layer.top_diff(),
                    *out = layer.tops[0]->data.read();
        float* din = layer.bottom_diff();
        std::fill(din, din + layer.bottoms[0]->count(), 0.0F);
        planes(layer, [&](const PlanePool& pool, int64_t from, int64_t at) {
            pool.backward(in + from, out + at, picked_.empty() ? nullptr : picked_.data() + at,
                          dout + at, din + from);
        });
    }

   private:
    struct Level {
        PlanePool pool;
        int64_t offset;  // of the level in an image's row
    };

    // body(pool, first input, first output) for each plane and level; a plane's levels in order.
    template <class F>
    void planes(const Layer& layer, F&& body) const {
        const int64_t area = count(layer.shape(), 2, 4);
        parallel(
            count(layer.shape(), 0, 2),
            [&](int64_t begin, int64_t end) {
                for (int64_t p = begin; p < end; ++p) {
                    const int64_t row = p / channels_ * channels_ * bins_, channel = p % channels_;
                    for (const Level& level : levels_)
                        body(level.pool, p * area,
                             row + level.offset + channel * level.pool.outputs());
                }
            },
            area * static_cast<int64_t>(levels_.size()));
    }

    std::vector<Level> levels_;
    int64_t channels_ = 0, bins_ = 0;
    std::vector<int32_t> picked_;
};
}  // namespace

std::unique_ptr<Kernel> make_spp() {
    return make<SPP>();
}

}  // namespace sn
