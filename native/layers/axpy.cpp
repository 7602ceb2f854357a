// A scale for every channel times x, plus y (SENet: axpy_layer.cpp).
#include "../engine/channels.hpp"
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"

namespace sn {

namespace {
class Axpy final : public Kernel {
   public:
    void forward(Layer& layer) override {
        const Channels at = spread(layer);
        const auto first = layer.bottoms[1]->data.read(at.desc);
        const auto second = layer.bottoms[2]->data.read(at.desc);
        const auto top = layer.tops[0]->data.write(at.desc);
        const float *x = floats(first), *y = floats(second);
        float* out = floats(top);
        each_value(at, [=](int64_t i, float a) { out[i] = a * x[i] + y[i]; });
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void backward(Layer& layer) override {
        const Channels at = spread(layer);
        const auto top = layer.tops[0]->diff.read(at.desc);
        const float* dy = floats(top);
        if (layer.propagate[0]) sum(layer, at, dy);
        if (layer.propagate[1]) {
            const auto bottom = layer.bottoms[1]->diff.write(at.desc);
            float* dx = floats(bottom);
            each_value(at, [=](int64_t i, float a) { dx[i] = a * dy[i]; });
        }
        if (layer.propagate[2])
            map(layer.tops[0]->diff, layer.bottoms[2]->diff, true, [](float d) { return d; });
    }

   private:
    // The scales in the order of the layout's rows, zero where it is padded.
    Channels spread(const Layer& layer) {
        const Channels at = channels_of(layer.bottoms[1]->data);
        const float* scale = layer.bottom(0);
        scales_.assign(static_cast<size_t>(at.outer * at.padded()), 0);
        for (int64_t n = 0; n < at.outer; ++n)
            std::copy(scale + n * at.channels, scale + (n + 1) * at.channels,
                      scales_.begin() + n * at.padded());
        return at;
    }

    template <class F>
    void each_value(const Channels& at, F step) const {
        parallel(
            at.rows(),
            [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                    const float* scale = scales_.data() + row * at.block;
                    const int64_t first = row * at.row_size();
                    if (at.block == 1) {
                        for (int64_t i = 0; i < at.inner; ++i) step(first + i, scale[0]);
                        continue;
                    }
                    for (int64_t i = 0; i < at.inner; ++i)
                        for (int64_t b = 0; b < at.block; ++b)
                            step(first + i * at.block + b, scale[b]);
                }
            },
            at.row_size());
    }

    void sum(Layer& layer, const Channels& at, const float* dy) {
        const auto source = layer.bottoms[1]->data.read(at.desc);
        const float* x = floats(source);
        float* out = layer.bottom_diff(0);
        sums_.assign(static_cast<size_t>(at.rows() * at.block), 0);
        parallel(
            at.rows(),
            [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                    double* total = sums_.data() + row * at.block;
                    const int64_t first = row * at.row_size();
                    for (int64_t i = 0; i < at.inner; ++i)
                        for (int64_t b = 0; b < at.block; ++b) {
                            const int64_t k = first + i * at.block + b;
                            total[b] += static_cast<double>(dy[k] * x[k]);
                        }
                    float* to = out + row / at.groups * at.channels + row % at.groups * at.block;
                    for (int64_t b = 0; b < at.real(row); ++b) to[b] = static_cast<float>(total[b]);
                }
            },
            at.row_size());
    }

    std::vector<float> scales_;
    std::vector<double> sums_;
};
}  // namespace

std::unique_ptr<Kernel> make_axpy() {
    return make<Axpy>();
}

}  // namespace sn
