// A row of a table for every index (Caffe: embed_layer.cpp).
#include "../engine/layer.hpp"
#include "indices.hpp"
#include "no_gradient.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class Embed final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        rows_ = layer.options.integer("input_dim");
        width_ = layer.options.integer("num_output");
        bias_ = layer.options.flag("bias_term");
        picked_.resize(static_cast<size_t>(layer.bottoms[0]->count()));
    }

    void forward(Layer& layer) override {
        find(layer);
        const float *table = layer.param(0), *bias = bias_ ? layer.param(1) : nullptr;
        float* y = layer.top();
        const int64_t width = width_;
        parallel(
            items(),
            [=](int64_t begin, int64_t end) {
                for (int64_t n = begin; n < end; ++n) {
                    const float* row = table + picked_[static_cast<size_t>(n)] * width;
                    float* out = y + n * width;
                    std::copy_n(row, width, out);
                    for (int64_t i = 0; bias && i < width; ++i) out[i] += bias[i];
                }
            },
            width_);
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 0, "indices");
        const float* dy = layer.top_diff();
        if (layer.learns[0]) add_rows(dy, layer.param_diff(0));
        if (bias_ && layer.learns[1]) add_column_sums(dy, items(), width_, layer.param_diff(1));
    }

   private:
    int64_t items() const { return static_cast<int64_t>(picked_.size()); }

    void find(const Layer& layer) {
        const float* x = layer.bottom();
        for (size_t n = 0; n < picked_.size(); ++n) {
            picked_[n] = index_of(x[n], rows_);
            if (picked_[n] >= 0) continue;
            picked_.assign(picked_.size(), 0);
            layer.refuse("index " + number_text(x[n]) + " is out of range: there are " +
                         std::to_string(rows_) + " rows");
        }
    }

    // Threads share the columns out, so that no two add to the same value.
    void add_rows(const float* dy, float* sums) const {
        parallel(
            width_,
            [&](int64_t begin, int64_t end) {
                for (size_t n = 0; n < picked_.size(); ++n) {
                    const float* from = dy + static_cast<int64_t>(n) * width_;
                    float* to = sums + picked_[n] * width_;
                    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
                }
            },
            items());
    }

    int64_t rows_ = 0, width_ = 0;
    bool bias_ = false;
    std::vector<int64_t> picked_;
};
}  // namespace

std::unique_ptr<Kernel> make_embed() {
    return make<Embed>();
}

}  // namespace sn
