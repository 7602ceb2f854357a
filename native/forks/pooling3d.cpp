// Pooling of clips: time, height and width (C3D: pool3d_layer.cpp).
#include <algorithm>
#include <cfloat>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
// One axis: the windows' places and lengths.
struct Axis {
    int64_t size, outputs, kernel, stride, pad;

    int64_t begin(int64_t o) const { return std::max<int64_t>(o * stride - pad, 0); }
    int64_t end(int64_t o) const { return std::min(o * stride - pad + kernel, size); }
    // What an average divides by: the padding counts, up to its far edge.
    int64_t length(int64_t o) const {
        return std::min(o * stride - pad + kernel, size + pad) - (o * stride - pad);
    }
};

class Pooling3D final : public LinearKernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        largest_ = layer.options.text("method") == "max";
        const Shape &in = layer.shape(), &out = layer.tops[0]->shape();
        const auto kernel = layer.options.integers("kernel"), pad = layer.options.integers("pad");
        const auto stride = layer.options.integers("stride");
        for (size_t a = 0; a < 3; ++a)
            axes_[a] = {in[a + 2], out[a + 2], kernel[a], stride[a], pad[a]};
        planes_ = in[0] * in[1];
        inputs_ = in[2] * in[3] * in[4], outputs_ = out[2] * out[3] * out[4];
        picked_.assign(largest_ ? static_cast<size_t>(layer.tops[0]->count()) : 0, -1);
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        each_plane([&](int64_t p) {
            const float* from = x + p * inputs_;
            int64_t o = p * outputs_;
            windows([&](const int64_t* at) {
                largest_ ? pick(from, y, o, at) : mean(from, y, o, at), ++o;
            });
        });
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        each_plane([&](int64_t p) {
            float* to = dx + p * inputs_;
            std::fill_n(to, inputs_, 0.0F);
            int64_t o = p * outputs_;
            windows([&](const int64_t* at) {
                if (largest_) {
                    const int32_t place = picked_[static_cast<size_t>(o)];
                    if (place >= 0) to[place] += dy[o];
                } else {
                    const float share = dy[o] / divisor(at);
                    cells(at, [&](int64_t i) { to[i] += share; });
                }
                ++o;
            });
        });
    }

   private:
    template <class F>
    void each_plane(F&& body) const {
        const int64_t cells = axes_[0].kernel * axes_[1].kernel * axes_[2].kernel;
        parallel_each(planes_, outputs_ * std::min<int64_t>(cells, inputs_),
                      [&](int64_t p) { body(p); });
    }

    // body(the window's number along each axis)
    template <class F>
    void windows(F&& body) const {
        int64_t at[3];
        for (at[0] = 0; at[0] < axes_[0].outputs; ++at[0])
            for (at[1] = 0; at[1] < axes_[1].outputs; ++at[1])
                for (at[2] = 0; at[2] < axes_[2].outputs; ++at[2]) body(at);
    }

    template <class F>
    void cells(const int64_t* at, F&& body) const {
        const auto &t = axes_[0], &h = axes_[1], &w = axes_[2];
        for (int64_t i = t.begin(at[0]); i < t.end(at[0]); ++i)
            for (int64_t j = h.begin(at[1]); j < h.end(at[1]); ++j)
                for (int64_t k = w.begin(at[2]); k < w.end(at[2]); ++k)
                    body((i * h.size + j) * w.size + k);
    }

    float divisor(const int64_t* at) const {
        return static_cast<float>(axes_[0].length(at[0]) * axes_[1].length(at[1]) *
                                  axes_[2].length(at[2]));
    }

    void pick(const float* x, float* y, int64_t o, const int64_t* at) {
        float best = -FLT_MAX;
        int64_t place = -1;
        cells(at, [&](int64_t i) {
            if (x[i] > best) best = x[i], place = i;
        });
        y[o] = best;
        picked_[static_cast<size_t>(o)] = static_cast<int32_t>(place);
    }

    void mean(const float* x, float* y, int64_t o, const int64_t* at) const {
        double sum = 0;
        cells(at, [&](int64_t i) { sum += static_cast<double>(x[i]); });
        y[o] = static_cast<float>(sum) / divisor(at);
    }

    bool largest_ = true;
    Axis axes_[3]{};
    int64_t planes_ = 0, inputs_ = 0, outputs_ = 0;
    std::vector<int32_t> picked_;  // where each maximum came from, -1: nowhere
};
}  // namespace

REGISTER_LAYER(Pooling3D, Pooling3D);

}  // namespace sn
