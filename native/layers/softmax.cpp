// Softmax, its logarithm, and the losses behind it.
#include <cfloat>
#include <cmath>

#include "../engine/nan.hpp"
#include "../engine/plan/attention_part.hpp"
#include "../engine/primitive.hpp"
#include "loss.hpp"
#include "probabilities.hpp"

namespace sn {

using dnnl::softmax_backward;
using dnnl::softmax_forward;

namespace {
// Probabilities along one axis (Caffe: softmax_layer.cpp), or their logarithms.
template <dnnl::algorithm algorithm>
class Softmax final : public Kernel, public HasAttentionPart {
   public:
    AttentionPart attention_part() const override {
        const bool is_log = algorithm == dnnl::algorithm::softmax_log;
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
                                                      algorithm, desc, desc, axis, attributes());
        forward_ = softmax_forward(forward);
        if (layer.backward)
            backward_ = softmax_backward(softmax_backward::primitive_desc(
                cpu(), algorithm, desc, desc, desc, axis, forward, attributes()));
        desc_ = desc;
    }

    dnnl::memory::desc around_;
    int axis_ = 1;
    dnnl::memory::desc desc_;
    softmax_forward forward_;
    softmax_backward backward_;
};

// Softmax and cross entropy in one (Caffe: softmax_loss_layer.cpp).
class SoftmaxWithLoss final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        p_.reshape(layer);
        labels_.reshape(layer, p_.channels);
        weights_.clear();
        if (layer.options.has("class_weights")) weights_ = layer.options.reals32("class_weights");
    }

    void forward(Layer& layer) override {
        labels_.read(layer);
        p_.compute(layer.bottom());
        const int64_t places = p_.outer * p_.inner;
        const double sum =
            loss_sum(layer, places, 20, [&](int64_t i) { return static_cast<double>(loss_at(i)); });
        if (layer.tops.size() > 2)  // R-FCN: the loss of each place
            for (int64_t i = 0; i < places; ++i) layer.top(2)[i] = loss_at(i);
        set_loss(layer, sum / normalizer(layer, p_.outer, p_.inner, labels_.valid()));
        if (layer.tops.size() > 1) std::copy(p_.values(), p_.values() + p_.count(), layer.top(1));
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "labels");
        if (!layer.propagate[0]) return;
        labels_.read(layer);
        const double by = normalizer(layer, p_.outer, p_.inner, labels_.valid());
        const float scale = weight(layer) / static_cast<float>(by);
        const float* p = p_.values();
        float* dx = layer.bottom_diff(0);
        if (p_.inner == 1 && weights_.empty()) return backward_rows(p, scale, dx);
        parallel_each(p_.outer * p_.channels, p_.inner * 2, [&](int64_t row) {
            const int64_t c = row % p_.channels, first = row / p_.channels * p_.inner;
            for (int64_t i = 0; i < p_.inner; ++i) {
                const int32_t label = labels_[first + i];
                const int64_t k = row * p_.inner + i;
                const float hit = label == c ? 1.0F : 0.0F;
                dx[k] = label == Labels::ignored ? 0.0F : (p[k] - hit) * scale * weight_of(label);
            }
        });
    }

   private:
    float loss_at(int64_t i) const {
        if (labels_[i] == Labels::ignored) return 0;
        const float p = p_.values()[p_.at(i / p_.inner, labels_[i], i % p_.inner)];
        return -std::log(p < FLT_MIN ? FLT_MIN : p) * weight_of(labels_[i]);
    }

    // SegNet: what a class counts.
    float weight_of(int32_t label) const {
        return weights_.empty() ? 1.0F : weights_[static_cast<size_t>(label)];
    }

    // The same where the classes of a place lie side by side.
    void backward_rows(const float* p, float scale, float* dx) const {
        const int64_t width = p_.channels;
        parallel_each(p_.outer, p_.channels * 2, [=](int64_t row) {
            const int32_t label = labels_[row];
            const float* from = p + row * width;
            float* to = dx + row * width;
            if (label == Labels::ignored) {
                std::fill_n(to, width, 0.0F);
                return;
            }
            for (int64_t c = 0; c < width; ++c) to[c] = from[c] * scale;
            to[label] = (from[label] - 1) * scale;
        });
    }

    Probabilities p_;
    Labels labels_;
    std::vector<float> weights_;
};

// Cross entropy weighted by a matrix over pairs of classes (Caffe: infogain_loss_layer.cpp).
class InfogainLoss final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        p_.reshape(layer);
        labels_.reshape(layer, p_.channels);
        matrix_ = layer.options.reals32("matrix");
        row_sums_.assign(static_cast<size_t>(p_.channels), 0);
    }

    void forward(Layer& layer) override {
        labels_.read(layer);
        p_.compute(layer.bottom());
        const float* h = matrix(layer);
        const double sum = loss_sum(layer, p_.outer * p_.inner, p_.channels * 20,
                                    [&](int64_t i) { return term(h, i); });
        set_loss(layer, sum / normalizer(layer, p_.outer, p_.inner, labels_.valid()));
        if (layer.tops.size() > 1) std::copy(p_.values(), p_.values() + p_.count(), layer.top(1));
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 1, "labels");
        refuse_gradient_of(layer, 2, "infogain matrix");
        if (!layer.propagate[0]) return;
        labels_.read(layer);
        const float* h = matrix(layer);
        for (int64_t r = 0; r < p_.channels; ++r) {
            double sum = 0;
            for (int64_t c = 0; c < p_.channels; ++c)
                sum += static_cast<double>(h[r * p_.channels + c]);
            row_sums_[static_cast<size_t>(r)] = static_cast<float>(sum);
        }
        const double by = normalizer(layer, p_.outer, p_.inner, labels_.valid());
        spread(h, layer.bottom_diff(0), weight(layer) / static_cast<float>(by));
    }

   private:
    static constexpr float least = 1e-20F;

    const float* matrix(const Layer& layer) const {
        return layer.bottoms.size() > 2 ? layer.bottom(2) : matrix_.data();
    }

    double term(const float* h, int64_t i) const {
        if (labels_[i] == Labels::ignored) return 0;
        const float* row = h + labels_[i] * p_.channels;
        double sum = 0;
        for (int64_t c = 0; c < p_.channels; ++c) {
            const float p = p_.values()[p_.at(i / p_.inner, c, i % p_.inner)];
            sum -= static_cast<double>(row[c] * std::log(p < least ? least : p));
        }
        return sum;
    }

    void spread(const float* h, float* dx, float scale) const {
        const float* p = p_.values();
        parallel_each(p_.outer * p_.channels, p_.inner * 4, [&](int64_t row) {
            const int64_t c = row % p_.channels, first = row / p_.channels * p_.inner;
            for (int64_t i = 0; i < p_.inner; ++i) {
                const int32_t label = labels_[first + i];
                const int64_t k = row * p_.inner + i;
                dx[k] = label == Labels::ignored
                            ? 0.0F
                            : scale * (p[k] * row_sums_[static_cast<size_t>(label)] -
                                       h[label * p_.channels + c]);
            }
        });
    }

    Probabilities p_;
    Labels labels_;
    std::vector<float> matrix_, row_sums_;
};
}  // namespace

REGISTER_LAYER(Softmax, Softmax<dnnl::algorithm::softmax_accurate>);
REGISTER_LAYER(LogSoftmax, Softmax<dnnl::algorithm::softmax_log>);
REGISTER_LAYER(SoftmaxWithLoss, SoftmaxWithLoss);
REGISTER_LAYER(SoftmaxWithLossOHEM, SoftmaxWithLoss);
REGISTER_LAYER(InfogainLoss, InfogainLoss);

}  // namespace sn
