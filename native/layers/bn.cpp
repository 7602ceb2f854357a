// Normalisation of each channel with a slope and a bias of its own: by statistics of the batch, by
// running ones, or not at all (PSPNet: bn_layer.cpp; SegNet: bn_layer.cpp).
#include <algorithm>
#include <cmath>

#include "../engine/affine.hpp"
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"
#include "normaliser.hpp"

namespace sn {

namespace {
enum class Statistics { batch, running, none };

Statistics statistics_of(const Layer& layer) {
    const std::string& word = layer.options.text("statistics");
    return word == "batch" ? Statistics::batch
                           : (word == "running" ? Statistics::running : Statistics::none);
}

class BN final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        statistics_ = statistics_of(layer);
        // Only PSPNet's has running statistics to add to.
        keeps_count_ = layer.params.size() > 2;
        eps_ = static_cast<float>(layer.options.real("eps"));
        momentum_ = static_cast<float>(layer.options.real("momentum"));
        const auto channels = static_cast<size_t>(layer.shape()[1]);
        mean_.assign(channels, 0.0F);
        variance_.assign(channels, 1.0F);
        ready_ = false;
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

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

std::unique_ptr<Kernel> make_bn() {
    return make<BN>();
}

}  // namespace sn
