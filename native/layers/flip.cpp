// Images turned round (happynear's Caffe: flip_layer.cpp).
#include <algorithm>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
class Flip final : public Kernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        across_ = layer.options.flag("flip_width");
        down_ = layer.options.flag("flip_height");
        const Shape& in = layer.shape();
        planes_ = in[0] * in[1], high_ = in[2], wide_ = in[3];
    }

    void forward(Layer& layer) override { turn(layer.bottom(), layer.top()); }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        if (layer.propagate[0]) turn(layer.top_diff(), layer.bottom_diff());
    }

   private:
    void turn(const float* from, float* to) const {
        const int64_t high = high_, wide = wide_;
        const bool across = across_, down = down_;
        parallel(
            planes_ * high,
            [=](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                    const int64_t h = r % high, row = down ? r - h + high - 1 - h : r;
                    const float* line = from + row * wide;
                    across ? std::reverse_copy(line, line + wide, to + r * wide)
                           : std::copy_n(line, wide, to + r * wide);
                }
            },
            wide);
    }

    bool across_ = true, down_ = false;
    int64_t planes_ = 0, high_ = 0, wide_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_flip() {
    return make<Flip>();
}

}  // namespace sn
