// Normalisation of each channel by its own or by running statistics (Caffe: batch_norm_layer.cpp).
#include <algorithm>
#include <cmath>

#include "../engine/broadcast.hpp"
#include "../engine/layer.hpp"
#include "../engine/primitive.hpp"

namespace sn {

using dnnl::batch_normalization_backward;
using dnnl::batch_normalization_forward;
using dnnl::normalization_flags;

namespace {
class BatchNorm final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Shape& shape = layer.shape();
        global_ = layer.options.flag("use_global_stats");
        eps_ = static_cast<float>(layer.options.real("eps"));
        fraction_ = static_cast<float>(layer.options.real("moving_average_fraction"));
        const auto channels = static_cast<size_t>(shape[1]);
        mean_.assign(channels, 0.0F);
        variance_.assign(channels, 0.0F);
        keeps_ = layer.in_place() && layer.backward && !global_;
        if (keeps_) kept_.reshape(shape);
        // oneDNN takes at most three spatial axes.
        rows_ =
            shape.size() <= 5 ? shape : Shape{shape[0], shape[1], count(shape, 2, shape.size())};
        desc_ = {};
    }

    void forward(Layer& layer) override {
        Tensor& x = layer.bottoms[0]->data;
        if (x.count() == 0) return;
        prepare(layer);
        if (global_) read_statistics(layer);
        if (keeps_) map(x, kept_, true, [](float v) { return v; });
        run(forward_, {{DNNL_ARG_SRC, (keeps_ ? kept_ : x).read(desc_)},
                       {DNNL_ARG_MEAN, over(mean_)},
                       {DNNL_ARG_VARIANCE, over(variance_)},
                       {DNNL_ARG_DST, layer.tops[0]->data.write(desc_)}});
        if (!global_) update_statistics(layer);
    }

    void backward(Layer& layer) override {
        Tensor& dx = layer.bottoms[0]->diff;
        if (!layer.propagate[0] || dx.count() == 0) return;
        if (global_) return backward_global(layer);
        if (desc_.is_zero()) prepare(layer);
        const Tensor& x = keeps_ ? kept_ : layer.bottoms[0]->data;
        run(backward_, {{DNNL_ARG_SRC, x.read(desc_)},
                        {DNNL_ARG_MEAN, over(mean_)},
                        {DNNL_ARG_VARIANCE, over(variance_)},
                        {DNNL_ARG_DIFF_DST, layer.tops[0]->diff.read(desc_)},
                        {DNNL_ARG_DIFF_SRC, dx.write(desc_)}});
    }

   private:
    // Primitives for the layout that the input comes in: the same at every pass.
    void prepare(const Layer& layer) {
        const auto found = layer.bottoms[0]->data.layout();
        const auto desc = rows_.size() == found.get_dims().size() ? found : plain_desc(rows_);
        if (desc == desc_) return;
        const auto flags =
            global_ ? normalization_flags::use_global_stats : normalization_flags::none;
        const batch_normalization_forward::primitive_desc forward(
            cpu(), dnnl::prop_kind::forward_training, desc, desc, eps_, flags);
        forward_ = batch_normalization_forward(forward);
        if (layer.backward && !global_)
            backward_ = batch_normalization_backward(batch_normalization_backward::primitive_desc(
                cpu(), dnnl::prop_kind::backward_data, desc, desc, desc, eps_, flags, forward));
        desc_ = desc;
    }

    // The blobs are running sums; the third counts what went in.
    void read_statistics(const Layer& layer) {
        const float *mean = layer.param(0), *variance = layer.param(1), sum = layer.param(2)[0];
        const float factor = sum == 0.0F ? 0.0F : 1.0F / sum;
        for (size_t c = 0; c < mean_.size(); ++c) {
            mean_[c] = mean[c] * factor;
            variance_[c] = variance[c] * factor;
        }
    }

    void update_statistics(const Layer& layer) {
        const int64_t values = layer.bottoms[0]->count() / static_cast<int64_t>(mean_.size());
        const float unbiased =
            values > 1 ? static_cast<float>(values) / static_cast<float>(values - 1) : 1.0F;
        float *mean = layer.params[0]->data.edit(), *variance = layer.params[1]->data.edit();
        float* sum = layer.params[2]->data.edit();
        sum[0] = sum[0] * fraction_ + 1.0F;
        for (size_t c = 0; c < mean_.size(); ++c) {
            mean[c] = mean[c] * fraction_ + mean_[c];
            variance[c] = variance[c] * fraction_ + unbiased * variance_[c];
        }
    }

    // Running statistics do not depend on the input.
    void backward_global(const Layer& layer) {
        const Broadcast view = broadcast(layer.tops[0]->diff, 1, 1);
        factors_.assign(static_cast<size_t>(view.padded()), 0.0F);
        for (size_t c = 0; c < variance_.size(); ++c)
            factors_[c] = 1.0F / std::sqrt(variance_[c] + eps_);
        const float* dy = floats(layer.tops[0]->diff.read(view.desc));
        float* dx = floats(layer.bottoms[0]->diff.write(view.desc));
        const float* factors = factors_.data();
        each(view, [=](int64_t i, int64_t c) { dx[i] = dy[i] * factors[c]; });
    }

    bool global_ = false, keeps_ = false;
    float eps_ = 0, fraction_ = 0;
    Shape rows_;
    std::vector<float> mean_, variance_, factors_;
    Tensor kept_;
    dnnl::memory::desc desc_;
    batch_normalization_forward forward_;
    batch_normalization_backward backward_;
};
}  // namespace

std::unique_ptr<Kernel> make_batch_norm() {
    return make<BatchNorm>();
}

}  // namespace sn
