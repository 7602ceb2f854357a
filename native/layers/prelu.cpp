// x above zero, slope · x below, with learned slopes (Caffe: prelu_layer.cpp).
#include "../engine/channels.hpp"
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"

namespace sn {

namespace {
class PReLU final : public BottomKernel {
   public:
    void reshape(Layer& layer) override { shared_ = layer.options.flag("channel_shared"); }

    void forward(Layer& layer) override {
        const Tensor& x = layer.bottoms[0]->data;
        const Channels at = spread(layer, x);
        const auto from = x.read(at.desc), to = layer.tops[0]->data.write(at.desc);
        typed(at.desc, [&](auto type) {
            using T = decltype(type);
            const T* in = values_of<T>(from);
            T* out = values_of<T>(to);
            each_row(at, [=](int64_t begin, int64_t block, const float* slope) {
                walk_row(at, begin, block, slope, [=](int64_t i, float a) {
                    const float v = in[i];
                    out[i] = std::max(v, 0.0F) + a * std::min(v, 0.0F);
                });
            });
        });
    }

    void backward(Layer& layer) override {
        const Tensor& x = layer.bottoms[0]->data;
        const Channels at = spread(layer, x);
        const auto in = x.read(at.desc), top = layer.tops[0]->diff.read(at.desc);
        typed(at.desc, [&](auto type) {
            using T = decltype(type);
            const T *v = values_of<T>(in), *dy = values_of<T>(top);
            if (layer.learns[0]) learn(layer, at, v, dy);
            if (!layer.propagate[0]) return;
            T* dx = values_of<T>(layer.bottoms[0]->diff.write(at.desc));
            each_row(at, [=](int64_t begin, int64_t block, const float* slope) {
                walk_row(at, begin, block, slope,
                         [=](int64_t i, float a) { dx[i] = dy[i] * (v[i] > 0 ? 1.0F : a); });
            });
        });
    }

   private:
    // Slopes for every channel of the layout, zero where it is padded.
    Channels spread(const Layer& layer, const Tensor& x) {
        const Channels at = channels_of(x, x.newest());
        const float* slope = layer.param(0);
        slopes_.assign(static_cast<size_t>(at.padded()), 0);
        for (int64_t c = 0; c < at.channels; ++c)
            slopes_[static_cast<size_t>(c)] = slope[shared_ ? 0 : c];
        return at;
    }

    // step(first value, slopes of the row's channels), a row for each item and group.
    template <class F>
    void each_row(const Channels& at, F step) {
        parallel_each(at.rows(), at.row_size(), [&](int64_t row) {
            step(row * at.row_size(), at.block, slopes_.data() + row % at.groups * at.block);
        });
    }

    template <class F>
    static void walk_row(const Channels& at, int64_t begin, int64_t block, const float* slope,
                         F step) {
        if (block == 1) {
            for (int64_t i = 0; i < at.inner; ++i) step(begin + i, slope[0]);
            return;
        }
        for (int64_t i = 0; i < at.inner; ++i)
            for (int64_t b = 0; b < block; ++b) step(begin + i * block + b, slope[b]);
    }

    // Each row has its own sum; the rows' sums are added in order, whatever thread computed them.
    template <class T>
    void learn(const Layer& layer, const Channels& at, const T* x, const T* dy) {
        sums_.assign(static_cast<size_t>(at.rows() * at.block), 0);
        parallel_each(at.rows(), at.row_size(), [&](int64_t row) {
            const int64_t first = row * at.row_size();
            double* sum = sums_.data() + row * at.block;
            for (int64_t i = 0; i < at.inner; ++i)
                for (int64_t b = 0; b < at.block; ++b) {
                    const int64_t k = first + i * at.block + b;
                    sum[b] += static_cast<double>(dy[k] * std::min<float>(x[k], 0.0F));
                }
        });
        float* slope = layer.param_diff(0);
        double shared = 0;
        for (int64_t c = 0; c < at.channels; ++c) {
            double total = 0;
            for (int64_t n = 0; n < at.outer; ++n)
                total += sums_[static_cast<size_t>(n * at.padded() + c)];
            shared += total;
            if (!shared_) slope[c] += static_cast<float>(total);
        }
        if (shared_) slope[0] += static_cast<float>(shared);
    }

    bool shared_ = false;
    std::vector<float> slopes_;
    std::vector<double> sums_;
};
}  // namespace

REGISTER_LAYER(PReLU, PReLU);

}  // namespace sn
