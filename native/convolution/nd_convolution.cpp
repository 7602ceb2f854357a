// Convolution and Deconvolution over more spatial axes than oneDNN has: patches and matrix
// products (Caffe: base_conv_layer.cpp).
#include "nd_convolution.hpp"

#include <algorithm>

#include "../engine/matmul/gemm.hpp"
#include "../engine/parallel.hpp"
#include "../engine/patches.hpp"

namespace sn {

namespace {
// A Deconvolution is the same with the image and the products exchanged.
class NdConvolution final : public Kernel {
   public:
    explicit NdConvolution(bool reverse) : reverse_(reverse) {}

    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        const Shape &bottom = layer.shape(), &top = layer.tops[0]->shape();
        const Shape &image = reverse_ ? top : bottom, &products = reverse_ ? bottom : top;
        const auto axis = static_cast<size_t>(options.integer("axis"));
        const auto spatial = static_cast<long>(axis) + 1;
        num_ = count(bottom, 0, axis);
        group_ = options.integer("group");
        bias_ = options.flag("bias_term");
        patches_.channels = image[axis];
        patches_.sizes = {image.begin() + spatial, image.end()};
        patches_.outputs = {products.begin() + spatial, products.end()};
        patches_.kernel = options.integers("kernel");
        patches_.stride = options.integers("stride");
        patches_.pad = options.integers("pad");
        patches_.dilation = options.integers("dilation");
        rows_ = products[axis];
        top_channels_ = top[axis];
        matrix_.resize(static_cast<size_t>(patches_.rows() * patches_.columns()));
    }

    void forward(Layer& layer) override {
        const float* weights = layer.param(0);
        for (size_t i = 0; i < layer.bottoms.size(); ++i) {
            const float* x = layer.bottom(i);
            float* y = layer.top(i);
            for (int64_t n = 0; n < num_; ++n) {
                float* out = y + n * top_size();
                reverse_ ? to_image(weights, x + n * products(), out)
                         : to_products(weights, x + n * patches_.inputs(), out);
                if (bias_) add_bias(layer.param(1), out);
            }
        }
    }

    void backward(Layer& layer) override {
        for (size_t i = 0; i < layer.tops.size(); ++i) {
            const float *dy = layer.top_diff(i), *x = layer.bottom(i);
            if (bias_ && layer.learns[1]) learn_bias(dy, layer.param_diff(1));
            float* below = layer.propagate[i] ? layer.bottom_diff(i) : nullptr;
            for (int64_t n = 0; n < num_; ++n) {
                const float *slope = dy + n * top_size(), *in = x + n * bottom_size();
                if (layer.learns[0])
                    learn(reverse_ ? slope : in, reverse_ ? in : slope, layer.param_diff(0));
                if (!below) continue;
                float* dx = below + n * bottom_size();
                reverse_ ? to_products(layer.param(0), slope, dx)
                         : to_image(layer.param(0), slope, dx);
            }
        }
    }

   private:
    int64_t products() const { return rows_ * patches_.columns(); }
    int64_t top_size() const { return reverse_ ? patches_.inputs() : products(); }
    int64_t bottom_size() const { return reverse_ ? products() : patches_.inputs(); }

    // body(weights, products, matrix) offsets of each group.
    template <class F>
    void groups(F&& body) const {
        const int64_t rows = rows_ / group_, depth = patches_.rows() / group_;
        for (int64_t g = 0; g < group_; ++g)
            body(rows, depth, g * rows * depth, g * rows * patches_.columns(),
                 g * depth * patches_.columns());
    }

    void to_products(const float* weights, const float* image, float* out) {
        if (patches_.columns() == 0) return;
        patches_.spread(image, matrix_.data());
        groups([&](int64_t rows, int64_t depth, int64_t w, int64_t p, int64_t m) {
            gemm(false, false, rows, patches_.columns(), depth, 1, weights + w, matrix_.data() + m,
                 0, out + p);
        });
    }

    void to_image(const float* weights, const float* in, float* image) {
        std::fill(image, image + patches_.inputs(), 0.0F);
        if (patches_.columns() == 0) return;
        groups([&](int64_t rows, int64_t depth, int64_t w, int64_t p, int64_t m) {
            gemm(true, false, depth, patches_.columns(), rows, 1, weights + w, in + p, 0,
                 matrix_.data() + m);
        });
        patches_.gather(matrix_.data(), image);
    }

    void learn(const float* image, const float* in, float* diff) {
        if (patches_.columns() == 0) return;
        patches_.spread(image, matrix_.data());
        groups([&](int64_t rows, int64_t depth, int64_t w, int64_t p, int64_t m) {
            gemm(false, true, rows, depth, patches_.columns(), 1, in + p, matrix_.data() + m, 1,
                 diff + w);
        });
    }

    void add_bias(const float* bias, float* out) const {
        const int64_t area = top_size() / top_channels_;
        for (int64_t c = 0; c < top_channels_; ++c)
            for (int64_t i = c * area; i < (c + 1) * area; ++i) out[i] += bias[c];
    }

    void learn_bias(const float* dy, float* diff) const {
        const int64_t area = top_size() / top_channels_;
        for (int64_t r = 0; r < num_ * top_channels_; ++r) {
            double sum = 0;
            for (int64_t i = r * area; i < (r + 1) * area; ++i) sum += static_cast<double>(dy[i]);
            diff[r % top_channels_] += static_cast<float>(sum);
        }
    }

    bool reverse_, bias_ = false;
    int64_t num_ = 0, group_ = 1, rows_ = 0, top_channels_ = 1;
    Patches patches_;
    std::vector<float> matrix_;
};
}  // namespace

std::unique_ptr<Kernel> make_nd_convolution(bool reverse) {
    return std::make_unique<NdConvolution>(reverse);
}

}  // namespace sn
