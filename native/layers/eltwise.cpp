// The product, weighted sum or maximum of blobs of one shape (Caffe: eltwise_layer.cpp).
#include <algorithm>

#include "../engine/saved.hpp"

namespace sn {

namespace {
class Eltwise final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const std::string& name = layer.options.text("operation");
        operation_ =
            name == "prod" ? Operation::prod : (name == "sum" ? Operation::sum : Operation::max);
        stable_ = layer.options.flag("stable_prod_grad");
        coefficients_.clear();
        for (double c : layer.options.reals("coeff"))
            coefficients_.push_back(static_cast<float>(c));
        values_.resize(layer.bottoms.size());
        desc_ = layer.bottoms[0]->data.plain();
        if (const Layer* relu = layer.fused_relu) slope_ = *relu->kernel->relu_slope(*relu);
    }

    bool looks_back(const Layer&, const Blob&) const override {
        return operation_ != Operation::sum;
    }
    void forget() override { first_.forget(), output_.forget(); }
    Followers followers(const Layer& layer) const override {
        return layer.train ? Followers::relu : Followers::none;
    }
    bool adds_two(const Layer& layer) const override {
        if (layer.options.text("operation") != "sum" || layer.bottoms.size() != 2) return false;
        const auto factors = layer.options.reals("coeff");
        return std::all_of(factors.begin(), factors.end(), [](double c) { return c == 1; });
    }
    bool fuses() const override { return operation_ == Operation::sum; }

    void forward(Layer& layer) override {
        const bool quotient = operation_ == Operation::prod && !stable_;
        first_.keep(layer.bottoms[0]->data,
                    layer.backward && layer.in_place() && operation_ != Operation::sum);
        const auto desc = desc_ = layout(layer);
        read(layer, desc, false);
        const auto top = layer.tops[0]->data.write(desc);
        if (operation_ == Operation::sum)
            add_up(layer.fused, floats(top), sn::values(desc));
        else
            combine(floats(top), sn::values(desc));
        output_.keep(layer.tops[0]->data, layer.backward && quotient && overwritten(layer));
    }

    // In place the first bottom's gradient lies where the top's does: it comes last.
    void backward(Layer& layer) override {
        const bool looks = operation_ != Operation::sum;
        const auto desc = looks ? layout(layer) : desc_;
        if (looks) read(layer, desc, true);
        for (size_t i = layer.bottoms.size(); i-- > 0;)
            if (layer.propagate[i] && !pass_on(layer, i)) differentiate(layer, desc, i);
    }

   private:
    enum class Operation { prod, sum, max };

    // The first blocked layout among the bottoms; rows if all have rows, or if padding would
    // not stay zero.
    dnnl::memory::desc layout(const Layer& layer) const {
        const bool keeps_zero = operation_ != Operation::prod || stable_;
        for (const Blob* bottom : layer.bottoms) {
            const auto desc = walk(bottom->data, keeps_zero);
            if (!is_plain(desc)) return desc;
        }
        return layer.bottoms[0]->data.plain();
    }

    void read(const Layer& layer, const dnnl::memory::desc& desc, bool as_it_was) {
        for (size_t i = 0; i < values_.size(); ++i) {
            const Tensor& data = layer.bottoms[i]->data;
            values_[i] = floats((i == 0 && as_it_was ? first_.of(data) : data).read(desc));
        }
    }

    // The sum, or its ReLU where a fused ReLU follows this layer.
    void add_up(bool relu, float* y, int64_t n) const {
        if (relu)
            add_up(y, n, [slope = slope_](float sum) { return sum > 0 ? sum : slope * sum; });
        else
            add_up(y, n, [](float sum) { return sum; });
    }

    template <class End>
    void add_up(float* y, int64_t n, End end) const {
        const float *a = values_[0], *b = values_[1];
        const float p = coefficients_[0], q = coefficients_[1];
        const size_t last = values_.size() - 1;
        if (last == 1) return each(n, [=](int64_t i) { y[i] = end(p * a[i] + q * b[i]); });
        each(n, [=](int64_t i) { y[i] = p * a[i] + q * b[i]; });
        for (size_t k = 2; k <= last; ++k) {
            const float* x = values_[k];
            const float c = coefficients_[k];
            if (k == last)
                each(n, [=](int64_t i) { y[i] = end(y[i] + c * x[i]); });
            else
                each(n, [=](int64_t i) { y[i] += c * x[i]; });
        }
    }

    // Products and maxima.
    void combine(float* y, int64_t n) const {
        const float *a = values_[0], *b = values_[1];
        if (operation_ == Operation::prod)
            each(n, [=](int64_t i) { y[i] = a[i] * b[i]; });
        else  // of equal values the second one counts
            each(n, [=](int64_t i) { y[i] = a[i] > b[i] ? a[i] : b[i]; });
        for (size_t k = 2; k < values_.size(); ++k) combine(y, values_[k], n);
    }

    void combine(float* y, const float* x, int64_t n) const {
        if (operation_ == Operation::prod)
            each(n, [=](int64_t i) { y[i] *= x[i]; });
        else
            each(n, [=](int64_t i) { y[i] = x[i] > y[i] ? x[i] : y[i]; });
    }

    void differentiate(Layer& layer, const dnnl::memory::desc& desc, size_t which) const {
        const auto top = layer.tops[0]->diff.read(desc);
        const auto bottom = layer.bottoms[which]->diff.write(desc);
        const float* dy = floats(top);
        float* dx = floats(bottom);
        const int64_t n = sn::values(desc);
        const float* const* x = values_.data();
        const size_t many = values_.size();
        if (operation_ == Operation::sum) {
            const float c = coefficients_[which];
            each(n, [=](int64_t i) { dx[i] = c * dy[i]; });
        } else if (operation_ == Operation::max) {
            each(n, [=](int64_t i) { dx[i] = largest(x, many, i) == which ? dy[i] : 0.0F; });
        } else if (stable_) {
            each(n, [=](int64_t i) {
                float product = 1;
                for (size_t k = 0; k < many; ++k)
                    if (k != which) product *= x[k][i];
                dx[i] = product * dy[i];
            });
        } else {
            const auto output = output_.of(layer.tops[0]->data).read(desc);
            const float *y = floats(output), *own = x[which];
            each(n, [=](int64_t i) { dx[i] = y[i] / own[i] * dy[i]; });
        }
    }

    // A sum passes its gradient unchanged to each of its terms.
    bool pass_on(Layer& layer, size_t which) const {
        if (operation_ != Operation::sum || coefficients_[which] != 1.0F) return false;
        layer.bottoms[which]->diff.copy(layer.tops[0]->diff);
        return true;
    }

    static size_t largest(const float* const* x, size_t many, int64_t i) {
        size_t best = x[0][i] > x[1][i] ? 0 : 1;
        for (size_t k = 2; k < many; ++k)
            if (x[k][i] > x[best][i]) best = k;
        return best;
    }

    template <class F>
    static void each(int64_t n, F step) {
        parallel(n, [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) step(i);
        });
    }

    Operation operation_ = Operation::sum;
    bool stable_ = true;
    float slope_ = 0;
    std::vector<float> coefficients_;
    // What the last forward pass walked in.
    dnnl::memory::desc desc_;
    std::vector<const float*> values_;
    Saved first_, output_;
};
}  // namespace

std::unique_ptr<Kernel> make_eltwise() {
    return make<Eltwise>();
}

}  // namespace sn
