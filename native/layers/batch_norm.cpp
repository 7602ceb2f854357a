// Normalization of each channel over a batch.
#include <algorithm>
#include <cmath>

#include "../engine/affine.hpp"
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"
#include "../engine/net.hpp"
#include "normaliser.hpp"

namespace sn {

namespace {
// Normalisation of each channel by its own or by running statistics (Caffe: batch_norm_layer.cpp),
// together with a Scale and a ReLU that follow in place.
class BatchNorm final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        global_ = layer.options.flag("use_global_stats");
        eps_ = layer.options.real32("eps");
        fraction_ = layer.options.real32("moving_average_fraction");
        const auto channels = static_cast<size_t>(layer.shape()[1]);
        mean_.assign(channels, 0.0F);
        variance_.assign(channels, 0.0F);
        if (Layer* relu = layer.fused_relu) slope_ = *relu->kernel->relu_slope(*relu);
        ready_ = false;
    }

    bool looks_back(const Layer& layer, Role role, size_t) const override {
        return role == Role::bottom && needs_input(layer);
    }
    // The gradient of a blob between would be seen.
    Followers followers(const Layer& layer) const override {
        if (scales(layer)) return Followers::none;
        return layer.in_place() || !layer.backward ? Followers::scale_and_relu : Followers::none;
    }
    bool is_affine(const Layer& layer) const override {
        return layer.options.flag("use_global_stats");
    }
    // Caffe: batch_norm_layer.cpp; the blobs are running sums, the third counts what went in.
    void fold_into(Affine& before, const Layer& layer) const override {
        const float *mean = layer.param(0), *variance = layer.param(1), sum = layer.param(2)[0];
        const double share = sum == 0.0F ? 0.0 : 1.0 / static_cast<double>(sum);
        const double eps = layer.options.real("eps");
        const float* slope = scales(layer) ? layer.param(3) : nullptr;
        const float* bias = scales(layer) ? layer.param(4) : nullptr;
        const auto factor = [=](size_t c) {
            const double by = slope ? static_cast<double>(slope[c]) : 1.0;
            return by / std::sqrt(static_cast<double>(variance[c]) * share + eps);
        };
        before.then(factor, [=](size_t c) {
            const double shift = bias ? static_cast<double>(bias[c]) : 0.0;
            return shift - static_cast<double>(mean[c]) * share * factor(c);
        });
    }
    bool fuses() const override { return true; }
    bool fuses_backward() const override { return true; }

    void forward(Layer& layer) override {
        Tensor& x = layer.bottoms[0]->data;
        if (x.count() == 0) return;
        look(x);
        const bool known = global_ || layer.repeats;
        if (global_) read_statistics(layer);
        meet(layer);
        const auto values = x.read(view_.desc);
        const auto to = layer.tops[0]->data.write(view_.desc);
        if (known) {
            set(0, view_.operands);
            passes_.apply(values, to);
            return;
        }
        passes_.forward(values, to, [this](int64_t begin, int64_t end) {
            for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
                mean_[c] = static_cast<float>(passes_.first[c]);
                variance_[c] = static_cast<float>(passes_.second[c]);
            }
            set(begin, end);
        });
        update_statistics(layer);
    }

    void backward(Layer& layer) override {
        Tensor& diff = layer.bottoms[0]->diff;
        if (diff.count() == 0 || (!layer.fused && !layer.propagate[0] && !scales(layer))) return;
        // With known statistics the sums of products are not used.
        const Tensor& x = needs_input(layer) ? layer.bottoms[0]->data : layer.tops[0]->diff;
        if (!ready_) look(x);
        meet(layer);
        set(0, view_.operands);
        const auto values = x.read(view_.desc), dy = layer.tops[0]->diff.read(view_.desc);
        const auto dx = layer.propagate[0] ? diff.write(view_.desc) : dnnl::memory();
        const double count = static_cast<double>(diff.count() / view_.operands);
        passes_.backward(values, dy, dx, [this, count](int64_t begin, int64_t end) {
            if (global_) return;
            for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
                const auto spread = static_cast<double>(variance_[c] + eps_);
                passes_.middle[c] = static_cast<float>(passes_.first[c] / count);
                passes_.slant[c] = static_cast<float>(passes_.second[c] / count / spread);
            }
        });
        if (layer.fused && layer.fused_scale) give_gradients(*layer.fused_scale, 0);
        if (scales(layer)) give_gradients(layer, 3);
    }

   private:
    // NVIDIA's has a slope and a bias behind the statistics.
    static bool scales(const Layer& layer) { return layer.params.size() > 3; }

    bool needs_input(const Layer& layer) const {
        return layer.fused_last || !global_ || scales(layer);
    }

    void look(const Tensor& x) {
        view_ = broadcast(x, 1, 1);
        passes_.resize(view_);
        ready_ = true;
    }

    // The Scale and the ReLU that this pass computes too.
    void meet(const Layer& layer) {
        const Layer* scale = layer.fused ? layer.fused_scale : nullptr;
        factors_ = scale ? scale->param(0) : (scales(layer) ? layer.param(3) : nullptr);
        shifts_ = scale && scale->params.size() > 1 ? scale->param(1)
                                                    : (scales(layer) ? layer.param(4) : nullptr);
        passes_.relu = layer.fused && layer.fused_relu;
        passes_.slope = slope_;
    }

    void set(int64_t begin, int64_t end) {
        for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
            const float factor = (factors_ ? factors_[c] : 1.0F) / std::sqrt(variance_[c] + eps_);
            passes_.mean[c] = mean_[c];
            passes_.factor[c] = factor;
            passes_.shift[c] = (shifts_ ? shifts_[c] : 0.0F) - mean_[c] * factor;
            passes_.middle[c] = passes_.slant[c] = 0;
        }
    }

    // To the layer's parameters number `first` and the next.
    void give_gradients(Layer& scale, size_t first) const {
        const auto give = [&](size_t i, auto&& of) {
            i += first;
            if (i >= scale.learns.size() || !scale.learns[i]) return;
            bool adds = true;
            float* diff = scale.param_diff(i, adds);
            for (size_t c = 0; c < mean_.size(); ++c)
                diff[c] = (adds ? diff[c] : 0.0F) + static_cast<float>(of(c));
        };
        give(0, [&](size_t c) {
            return passes_.second[c] / std::sqrt(static_cast<double>(variance_[c] + eps_));
        });
        give(1, [&](size_t c) { return passes_.first[c]; });
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

    bool global_ = false, ready_ = false;
    float eps_ = 0, fraction_ = 0, slope_ = 0;
    std::vector<float> mean_, variance_;
    const float *factors_ = nullptr, *shifts_ = nullptr;
    Broadcast view_;
    Normaliser passes_;
};

// Normalisation of each channel with a slope and a bias of its own: by statistics of the batch, by
// running ones, or not at all (PSPNet: bn_layer.cpp; SegNet: bn_layer.cpp).
enum class Statistics { batch, running, none };

Statistics statistics_of(const Layer& layer) {
    const std::string& word = layer.options.text("statistics");
    return word == "batch" ? Statistics::batch
                           : (word == "running" ? Statistics::running : Statistics::none);
}

class BN final : public BottomKernel {
   public:
    void reshape(Layer& layer) override {
        statistics_ = statistics_of(layer);
        // Only PSPNet's has running statistics to add to.
        keeps_count_ = layer.params.size() > 2;
        eps_ = layer.options.real32("eps");
        momentum_ = layer.options.real32("momentum");
        const auto channels = static_cast<size_t>(layer.shape()[1]);
        mean_.assign(channels, 0.0F);
        variance_.assign(channels, 1.0F);
        ready_ = false;
    }

    bool is_affine(const Layer& layer) const override {
        return statistics_of(layer) != Statistics::batch && layer.tops.size() == 1;
    }
    void fold_into(Affine& before, const Layer& layer) const override {
        const bool known = statistics_of(layer) == Statistics::running;
        const double eps = layer.options.real("eps");
        const float *slope = layer.param(0), *bias = layer.param(1);
        const float* mean = known ? layer.param(2) : nullptr;
        const float* variance = known ? layer.param(3) : nullptr;
        const auto factor = [=](size_t c) {
            const auto by = static_cast<double>(slope[c]);
            return known ? by / std::sqrt(static_cast<double>(variance[c]) + eps) : by;
        };
        before.then(factor, [=](size_t c) {
            const double middle = known ? static_cast<double>(mean[c]) : 0.0;
            return static_cast<double>(bias[c]) - middle * factor(c);
        });
    }

    void forward(Layer& layer) override {
        Tensor& x = layer.bottoms[0]->data;
        if (x.count() == 0) return;
        look(x);
        const auto values = x.read(view_.desc);
        const auto to = layer.tops[0]->data.write(view_.desc);
        if (statistics_ == Statistics::running) read_statistics(layer);
        if (statistics_ != Statistics::batch) {
            set(layer, 0, view_.operands);
            passes_.apply(values, to);
        } else {
            passes_.forward(values, to, [&](int64_t begin, int64_t end) {
                for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
                    mean_[c] = static_cast<float>(passes_.first[c]);
                    variance_[c] = static_cast<float>(passes_.second[c]);
                }
                set(layer, begin, end);
            });
            if (keeps_count_) update_statistics(layer);
        }
        show(layer);
    }

    void backward(Layer& layer) override {
        Tensor& diff = layer.bottoms[0]->diff;
        if (diff.count() == 0) return;
        const Tensor& x = layer.bottoms[0]->data;
        if (!ready_) look(x);
        set(layer, 0, view_.operands);
        const auto values = x.read(view_.desc), dy = layer.tops[0]->diff.read(view_.desc);
        const auto dx = layer.propagate[0] ? diff.write(view_.desc) : dnnl::memory();
        const double count = static_cast<double>(diff.count() / view_.operands);
        passes_.backward(values, dy, dx, [&](int64_t begin, int64_t end) {
            if (statistics_ != Statistics::batch) return;
            for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
                const auto spread = static_cast<double>(variance_[c] + eps_);
                passes_.middle[c] = static_cast<float>(passes_.first[c] / count);
                passes_.slant[c] = static_cast<float>(passes_.second[c] / count / spread);
            }
        });
        give(layer, 0,
             [&](size_t c) { return passes_.second[c] * static_cast<double>(spread(c)); });
        give(layer, 1, [&](size_t c) { return passes_.first[c]; });
    }

   private:
    void look(const Tensor& x) {
        view_ = broadcast(x, 1, 1);
        passes_.resize(view_);
        ready_ = true;
    }

    // What x - mean is multiplied by before the slope.
    float spread(size_t c) const {
        return statistics_ == Statistics::none ? 1.0F : 1.0F / std::sqrt(variance_[c] + eps_);
    }

    void set(const Layer& layer, int64_t begin, int64_t end) {
        const float *slope = layer.param(0), *bias = layer.param(1);
        for (auto c = static_cast<size_t>(begin); c < static_cast<size_t>(end); ++c) {
            const float factor = slope[c] * spread(c);
            passes_.mean[c] = mean_[c];
            passes_.factor[c] = factor;
            passes_.shift[c] = bias[c] - mean_[c] * factor;
            passes_.middle[c] = passes_.slant[c] = 0;
        }
    }

    template <class F>
    void give(Layer& layer, size_t i, F&& of) const {
        if (!layer.learns[i]) return;
        bool adds = true;
        float* diff = layer.param_diff(i, adds);
        for (size_t c = 0; c < mean_.size(); ++c)
            diff[c] = (adds ? diff[c] : 0.0F) + static_cast<float>(of(c));
    }

    void read_statistics(const Layer& layer) {
        std::copy_n(layer.param(2), mean_.size(), mean_.begin());
        std::copy_n(layer.param(3), variance_.size(), variance_.begin());
    }

    // The fork's average takes the variance as it is, without the correction of BatchNorm.
    void update_statistics(const Layer& layer) const {
        float *mean = layer.params[2]->data.edit(), *variance = layer.params[3]->data.edit();
        for (size_t c = 0; c < mean_.size(); ++c) {
            mean[c] = mean[c] * momentum_ + mean_[c] * (1 - momentum_);
            variance[c] = variance[c] * momentum_ + variance_[c] * (1 - momentum_);
        }
    }

    // SegNet's further tops: the batch's means and variances.
    void show(Layer& layer) const {
        if (layer.tops.size() > 1) std::copy(mean_.begin(), mean_.end(), layer.top(1));
        if (layer.tops.size() > 2) std::copy(variance_.begin(), variance_.end(), layer.top(2));
    }

    Statistics statistics_ = Statistics::batch;
    bool keeps_count_ = false, keeps_ = false, ready_ = false;
    float eps_ = 0, momentum_ = 0;
    std::vector<float> mean_, variance_;
    Broadcast view_;
    Normaliser passes_;
};
}  // namespace

REGISTER_LAYER(BatchNorm, BatchNorm);
REGISTER_LAYER(BN, BN);

}  // namespace sn
