// Fully connected: one matrix product each way (Caffe: inner_product_layer.cpp).
#include <algorithm>

#include "../engine/gemm.hpp"
#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
class InnerProduct final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        rows_ = count(layer.shape(), 0, axis);
        inputs_ = count(layer.shape(), axis, layer.shape().size());
        outputs_ = layer.options.integer("num_output");
        transpose_ = layer.options.flag("transpose");
        bias_ = layer.options.flag("bias_term");
    }

    void forward(Layer& layer) override {
        float* y = layer.top();
        if (bias_) {
            const float* bias = layer.param(1);
            parallel(
                rows_,
                [&](int64_t begin, int64_t end) {
                    for (int64_t r = begin; r < end; ++r)
                        std::copy(bias, bias + outputs_, y + r * outputs_);
                },
                outputs_);
        }
        gemm(false, !transpose_, rows_, outputs_, inputs_, 1, layer.bottom(), layer.param(0),
             bias_ ? 1 : 0, y);
    }

    void backward(Layer& layer) override {
        const float* dy = layer.top_diff();
        if (layer.learns[0]) {
            const float* x = layer.bottom();
            if (transpose_)
                gemm(true, false, inputs_, outputs_, rows_, 1, x, dy, 1, layer.param_diff(0));
            else
                gemm(true, false, outputs_, inputs_, rows_, 1, dy, x, 1, layer.param_diff(0));
        }
        if (bias_ && layer.learns[1]) {
            float* sums = layer.param_diff(1);
            parallel(
                outputs_,
                [&](int64_t begin, int64_t end) {
                    for (int64_t o = begin; o < end; o += 64) add_rows(dy, sums, o, end);
                },
                rows_);
        }
        if (layer.propagate[0])
            gemm(false, transpose_, rows_, inputs_, outputs_, 1, dy, layer.param(0), 0,
                 layer.bottom_diff());
    }

   private:
    // Up to 64 columns: rows are summed before the sum is added to what is there, so that
    // gradients of shared parameters that cancel do so to the last bit, as in Caffe.
    void add_rows(const float* dy, float* sums, int64_t first, int64_t end) const {
        const int64_t width = std::min<int64_t>(64, end - first);
        float part[64] = {};
        for (int64_t r = 0; r < rows_; ++r)
            for (int64_t o = 0; o < width; ++o) part[o] += dy[r * outputs_ + first + o];
        for (int64_t o = 0; o < width; ++o) sums[first + o] += part[o];
    }

    int64_t rows_ = 0, inputs_ = 0, outputs_ = 0;
    bool transpose_ = false, bias_ = false;
};
}  // namespace

std::unique_ptr<Kernel> make_inner_product() {
    return make<InnerProduct>();
}

}  // namespace sn
