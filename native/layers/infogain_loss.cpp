// Cross entropy weighted by a matrix over pairs of classes (Caffe: infogain_loss_layer.cpp).
#include "loss.hpp"
#include "probabilities.hpp"

namespace sn {

namespace {
class InfogainLoss final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        p_.reshape(layer);
        labels_.reshape(layer, p_.channels);
        const auto given = layer.options.reals("matrix");
        matrix_.resize(given.size());
        std::transform(given.begin(), given.end(), matrix_.begin(),
                       [](double v) { return static_cast<float>(v); });
        row_sums_.assign(static_cast<size_t>(p_.channels), 0);
    }

    void forward(Layer& layer) override {
        labels_.read(layer);
        p_.compute(layer.bottom());
        const float* h = matrix(layer);
        const double sum = loss_sum(
            layer, p_.outer * p_.inner, [&](int64_t i) { return term(h, i); }, p_.channels * 20);
        set_loss(layer, sum / normalizer(layer, p_.outer, p_.inner, labels_.valid()));
        if (layer.tops.size() > 1) std::copy(p_.values(), p_.values() + p_.count(), layer.top(1));
    }

    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

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
        parallel(
            p_.outer * p_.channels,
            [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                    const int64_t c = row % p_.channels, first = row / p_.channels * p_.inner;
                    for (int64_t i = 0; i < p_.inner; ++i) {
                        const int32_t label = labels_[first + i];
                        const int64_t k = row * p_.inner + i;
                        dx[k] = label == Labels::ignored
                                    ? 0.0F
                                    : scale * (p[k] * row_sums_[static_cast<size_t>(label)] -
                                               h[label * p_.channels + c]);
                    }
                }
            },
            p_.inner * 4);
    }

    Probabilities p_;
    Labels labels_;
    std::vector<float> matrix_, row_sums_;
};
}  // namespace

std::unique_ptr<Kernel> make_infogain_loss() {
    return make<InfogainLoss>();
}

}  // namespace sn
