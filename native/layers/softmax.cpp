// Probabilities along one axis (Caffe: softmax_layer.cpp), or their logarithms.
#include <cmath>

#include "../engine/nan.hpp"
#include "../engine/plan/attention_part.hpp"
#include "../engine/primitive.hpp"

namespace sn {

using dnnl::softmax_backward;
using dnnl::softmax_forward;

namespace {
class Softmax final : public Kernel, public HasAttentionPart {
   public:
    explicit Softmax(dnnl::algorithm algorithm) : algorithm_(algorithm) {}

    AttentionPart attention_part() const override {
        const bool is_log = algorithm_ == dnnl::algorithm::softmax_log;
        return is_log ? AttentionPart::none : AttentionPart::probabilities;
    }

    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        const auto outer = options.integer("outer"), channels = options.integer("channels"),
                   inner = options.integer("inner");
        // With the axis innermost: oneDNN has fast code for that.
        around_ = {{outer, channels, inner},
                   dnnl::memory::data_type::f32,
                   dnnl::memory::dims{channels * inner, 1, channels}};
        if (inner == 1) around_ = plain_desc({outer, channels});
        axis_ = static_cast<int>(options.integer("axis"));
        desc_ = {};
    }

    void forward(Layer& layer) override {
        if (layer.bottoms[0]->count() == 0) return;
        const auto spoilt = rows_with_nan(layer);
        prepare(layer);
        run(forward_, {{DNNL_ARG_SRC, layer.bottoms[0]->data.read(desc_)},
                       {DNNL_ARG_DST, layer.tops[0]->data.write(desc_)}});
        if (spoilt.empty()) return;
        float* y = layer.tops[0]->data.edit();
        each_value(layer, [&](int64_t i, size_t row) {
            if (spoilt[row]) y[i] = std::numeric_limits<float>::quiet_NaN();
        });
    }

    std::optional<double> products(const Layer& layer) const override {
        constexpr double exponential = 16;
        return static_cast<double>(layer.bottoms[0]->count()) * exponential;
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::top; }

    void backward(Layer& layer) override {
        if (!layer.propagate[0] || layer.bottoms[0]->count() == 0) return;
        if (desc_.is_zero()) prepare(layer);
        run(backward_, {{DNNL_ARG_DST, layer.tops[0]->data.read(desc_)},
                        {DNNL_ARG_DIFF_DST, layer.tops[0]->diff.read(desc_)},
                        {DNNL_ARG_DIFF_SRC, layer.bottoms[0]->diff.write(desc_)}});
    }

   private:
    // body(place of a value, number of its row)
    template <class F>
    static void each_value(const Layer& layer, F&& body) {
        const int64_t channels = layer.options.integer("channels"),
                      inner = layer.options.integer("inner");
        for (int64_t i = 0; i < layer.bottoms[0]->count(); ++i)
            body(i, static_cast<size_t>(i / (channels * inner) * inner + i % inner));
    }

    // Whether each row has a NaN, of which oneDNN makes zeros elsewhere; empty if none has.
    static std::vector<bool> rows_with_nan(const Layer& layer) {
        const Tensor& values = layer.bottoms[0]->data;
        if (!has_nan(values)) return {};
        const float* x = values.read();
        std::vector<bool> found(static_cast<size_t>(values.count()));
        each_value(layer, [&](int64_t i, size_t row) {
            if (std::isnan(x[i])) found[row] = true;
        });
        return found;
    }

    // Primitives for the layout that the input comes in: the same at every pass.
    void prepare(const Layer& layer) {
        auto desc = layer.bottoms[0]->data.layout();
        const bool plain = is_plain(desc);
        if (plain) desc = around_;
        if (desc == desc_) return;
        const int axis = plain ? 1 : axis_;
        const softmax_forward::primitive_desc forward(cpu(), dnnl::prop_kind::forward_training,
                                                      algorithm_, desc, desc, axis, attributes());
        forward_ = softmax_forward(forward);
        if (layer.backward)
            backward_ = softmax_backward(softmax_backward::primitive_desc(
                cpu(), algorithm_, desc, desc, desc, axis, forward, attributes()));
        desc_ = desc;
    }

    dnnl::algorithm algorithm_;
    dnnl::memory::desc around_;
    int axis_ = 1;
    dnnl::memory::desc desc_;
    softmax_forward forward_;
    softmax_backward backward_;
};
}  // namespace

std::unique_ptr<Kernel> make_softmax() {
    return std::make_unique<Softmax>(dnnl::algorithm::softmax_accurate);
}

std::unique_ptr<Kernel> make_log_softmax() {
    return std::make_unique<Softmax>(dnnl::algorithm::softmax_log);
}

}  // namespace sn
