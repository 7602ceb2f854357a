// Each value divided by a power of its neighbours' squares, across channels or within one
// (Caffe: lrn_layer.cpp).  oneDNN has fast code for the usual sizes across channels only.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"
#include "../engine/primitive.hpp"

namespace sn {

using dnnl::lrn_backward;
using dnnl::lrn_forward;
using dnnl::memory;

namespace {
// weight ^ -beta; the usual beta without a call for each value.
void powers(const float* weights, float* out, int64_t n, float beta) {
    if (beta == 0.75F)
        for (int64_t i = 0; i < n; ++i) {
            const float root = std::sqrt(weights[i]);
            out[i] = 1.0F / (root * std::sqrt(root));
        }
    else
        for (int64_t i = 0; i < n; ++i) out[i] = std::pow(weights[i], -beta);
}

bool is_fast(const char* implementation) {
    return !std::strstr(implementation, "ref") && !std::strstr(implementation, "simple");
}

class LRN final : public BottomKernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        const Shape& shape = layer.shape();
        num_ = shape[0], channels_ = shape[1], height_ = shape[2], width_ = shape[3];
        size_ = options.integer("local_size");
        alpha_ = options.real32("alpha");
        beta_ = options.real32("beta");
        across_ = options.text("norm_region") == "across_channels";
        // Caffe's k is for the region across channels alone.
        k_ = across_ ? options.real32("k") : 1.0F;
        desc_ = {};
        workspace_ = {};
        weights_.clear();
        fast_ = across_ && layer.bottoms[0]->count() > 0 && find_usual(layer);
        if (fast_) return;
        weights_.resize(static_cast<size_t>(layer.bottoms[0]->count()));
        if (layer.backward) terms_.resize(weights_.size());
    }

    void forward(Layer& layer) override {
        if (!fast_) return forward_plain(layer);
        const auto found = layer.bottoms[0]->data.newest();
        if (found != desc_ && !is_plain(found) && !make(layer, found)) make(layer, usual_);
        Arguments arguments = {{DNNL_ARG_SRC, layer.bottoms[0]->data.read(desc_)},
                               {DNNL_ARG_DST, layer.tops[0]->data.write(desc_)}};
        if (workspace_) arguments.add(DNNL_ARG_WORKSPACE, workspace_);
        run(forward_, arguments);
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        if (!fast_) return backward_plain(layer);
        Arguments arguments = {{DNNL_ARG_SRC, layer.bottoms[0]->data.read(desc_)},
                               {DNNL_ARG_DIFF_DST, layer.tops[0]->diff.read(desc_)},
                               {DNNL_ARG_DIFF_SRC, layer.bottoms[0]->diff.write(desc_)}};
        if (workspace_) arguments.add(DNNL_ARG_WORKSPACE, workspace_);
        run(backward_, arguments);
    }

   private:
    // A layout that oneDNN has fast code for.
    bool find_usual(const Layer& layer) {
        const memory::dims dims(layer.shape().begin(), layer.shape().end());
        for (const auto tag : {memory::format_tag::nChw16c, memory::format_tag::nChw8c}) {
            usual_ = {dims, memory::data_type::f32, tag};
            if (make(layer, usual_)) return true;
        }
        return false;
    }

    // Primitives for one layout, if oneDNN has fast ones; the same at every pass.
    bool make(const Layer& layer, const memory::desc& desc) {
        const auto algorithm = dnnl::algorithm::lrn_across_channels;
        const auto kind =
            layer.backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
        const lrn_forward::primitive_desc forward(cpu(), kind, algorithm, desc, desc, size_, alpha_,
                                                  beta_, k_, attributes(), true);
        if (!forward || !is_fast(forward.impl_info_str())) return false;
        if (layer.backward) {
            const lrn_backward::primitive_desc backward(cpu(), algorithm, desc, desc, desc, size_,
                                                        alpha_, beta_, k_, forward, attributes(),
                                                        true);
            if (!backward || !is_fast(backward.impl_info_str())) return false;
            backward_ = lrn_backward(backward);
            const auto notes = forward.workspace_desc();
            if (notes.get_size() == 0)
                workspace_ = {};
            else if (!workspace_ || workspace_.get_desc() != notes)
                workspace_ = zeroed(notes);
        }
        forward_ = lrn_forward(forward);
        desc_ = desc;
        return true;
    }

    template <class F>
    void images(F&& body) const {
        const int64_t n = channels_ * height_ * width_;
        parallel_each(num_, 16 * n, [&](int64_t i) { body(i * n, n); });
    }

    void forward_plain(Layer& layer) {
        const float* x = layer.bottom();
        float* y = layer.top();
        const float share = alpha_ / static_cast<float>(window());
        images([&](int64_t at, int64_t n) {
            const float* in = x + at;
            float *out = y + at, *weights = weights_.data() + at;
            for (int64_t i = 0; i < n; ++i) out[i] = in[i] * in[i];
            add_windows(out, weights);
            for (int64_t i = 0; i < n; ++i) weights[i] = k_ + share * weights[i];
            powers(weights, out, n, beta_);
            for (int64_t i = 0; i < n; ++i) out[i] *= in[i];
        });
    }

    // With weights w and y = x w^-b: dx = dy w^-b - 2 a b x S, where S sums dy x w^(-b-1) over the
    // windows that a value lies in, which are those around it.
    void backward_plain(Layer& layer) {
        const float *x = layer.bottom(), *dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        const float factor = 2 * beta_ * alpha_ / static_cast<float>(window());
        images([&](int64_t at, int64_t n) {
            const float *in = x + at, *slope = dy + at, *weights = weights_.data() + at;
            float *out = dx + at, *terms = terms_.data() + at;
            powers(weights, out, n, beta_);
            for (int64_t i = 0; i < n; ++i) terms[i] = slope[i] * in[i] * out[i] / weights[i];
            add_windows(terms, out);
            powers(weights, terms, n, beta_);
            for (int64_t i = 0; i < n; ++i) out[i] = slope[i] * terms[i] - factor * in[i] * out[i];
        });
    }

    // The divisor of a window's sum; it counts the padding.
    int64_t window() const { return across_ ? size_ : size_ * size_; }

    // The sums of the windows around each value of an image; `values` is used up.
    void add_windows(float* values, float* sums) const {
        if (across_) return add_along(values, sums, 1, channels_, height_ * width_);
        add_along(values, sums, channels_ * height_, width_, 1);
        add_along(sums, values, channels_, height_, width_);
        std::copy(values, values + channels_ * height_ * width_, sums);
    }

    // The same along one axis: n values on it, `outer` times, `inner` apart.
    void add_along(const float* values, float* sums, int64_t outer, int64_t n,
                   int64_t inner) const {
        const int64_t half = size_ / 2;
        for (int64_t o = 0; o < outer; ++o, values += n * inner, sums += n * inner)
            for (int64_t a = 0; a < n; ++a) {
                float* to = sums + a * inner;
                std::fill(to, to + inner, 0.0F);
                const int64_t end = std::min(n, a + half + 1);
                for (int64_t b = std::max<int64_t>(0, a - half); b < end; ++b)
                    for (int64_t i = 0; i < inner; ++i) to[i] += values[b * inner + i];
            }
    }

    int64_t num_ = 0, channels_ = 0, height_ = 0, width_ = 0, size_ = 0;
    float alpha_ = 0, beta_ = 0, k_ = 0;
    bool across_ = true, fast_ = false;
    memory::desc desc_, usual_;
    memory workspace_;
    lrn_forward forward_;
    lrn_backward backward_;
    std::vector<float> weights_, terms_;
};
}  // namespace

REGISTER_LAYER(LRN, LRN);

}  // namespace sn
