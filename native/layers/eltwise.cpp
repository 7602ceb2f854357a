// The product, weighted sum or maximum of blobs of one shape (Caffe: eltwise_layer.cpp).
#include <algorithm>

#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"

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
        if (const Layer* relu = layer.fused_relu) slope_ = *relu->kernel->relu_slope(*relu);
    }

    bool looks_back(const Layer&, Role role, size_t) const override {
        return role == Role::bottom && operation_ != Operation::sum;
    }
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
        const auto desc = layout(layer);
        const auto inputs = read(layer, desc);
        const auto top = layer.tops[0]->data.write(desc);
        typed(desc, [&](auto type) {
            using T = decltype(type);
            if (operation_ == Operation::sum)
                add_up(pointers<T>(inputs), layer.fused, values_of<T>(top), sn::values(desc));
            else
                combine(pointers<T>(inputs), values_of<T>(top), sn::values(desc));
        });
    }

    // In place the first bottom's gradient lies where the top's does: it comes last.
    void backward(Layer& layer) override {
        if (operation_ == Operation::sum) {
            for (size_t i = layer.bottoms.size(); i-- > 0;)
                if (layer.propagate[i]) pass_on(layer, i);
            return;
        }
        const auto desc = layout(layer);
        const auto inputs = read(layer, desc);
        for (size_t i = layer.bottoms.size(); i-- > 0;)
            if (layer.propagate[i])
                typed(desc, [&](auto type) {
                    differentiate(layer, desc, pointers<decltype(type)>(inputs), i);
                });
    }

   private:
    enum class Operation { prod, sum, max };

    dnnl::memory::desc layout(const Layer& layer) const {
        std::vector<const Tensor*> tensors;
        for (const Blob* bottom : layer.bottoms) tensors.push_back(&bottom->data);
        return walk(tensors, operation_ != Operation::prod || stable_);
    }

    using Memories = std::vector<dnnl::memory>;
    Memories read(const Layer& layer, const dnnl::memory::desc& desc) const {
        Memories found;
        for (const Blob* bottom : layer.bottoms) found.push_back(bottom->data.read(desc));
        return found;
    }

    template <class T>
    static std::vector<const T*> pointers(const Memories& memories) {
        std::vector<const T*> found;
        for (const auto& memory : memories) found.push_back(values_of<T>(memory));
        return found;
    }

    // The sum, or its ReLU where a fused ReLU follows this layer.
    template <class T>
    void add_up(const std::vector<const T*>& x, bool relu, T* y, int64_t n) const {
        if (relu)
            sn::add_up(x, coefficients_, y, n, [slope = slope_](float sum, int64_t) {
                return sum > 0 ? sum : slope * sum;
            });
        else
            sn::add_up(x, coefficients_, y, n, [](float sum, int64_t) { return sum; });
    }

    // Products and maxima.
    template <class T>
    void combine(const std::vector<const T*>& x, T* y, int64_t n) const {
        const T *const *all = x.data(), *a = x[0], *b = x[1];
        const size_t many = x.size();
        if (operation_ == Operation::prod && many == 2)
            each(n, [=](int64_t i) { y[i] = a[i] * b[i]; });
        else if (operation_ == Operation::prod)
            each(n, [=](int64_t i) {
                float product = a[i] * b[i];
                for (size_t k = 2; k < many; ++k) product *= all[k][i];
                y[i] = product;
            });
        else if (many == 2)
            each(n, [=](int64_t i) {
                const float p = a[i], q = b[i];
                y[i] = p > q ? p : q;
            });
        else
            each(n, [=](int64_t i) {
                const float most = all[largest(all, many, i)][i];
                y[i] = most;
            });
    }

    template <class T>
    void differentiate(Layer& layer, const dnnl::memory::desc& desc,
                       const std::vector<const T*>& inputs, size_t which) const {
        const auto top = layer.tops[0]->diff.read(desc);
        const auto bottom = layer.bottoms[which]->diff.write(desc);
        const T* dy = values_of<T>(top);
        T* dx = values_of<T>(bottom);
        const int64_t n = sn::values(desc);
        const T* const* x = inputs.data();
        const size_t many = inputs.size();
        if (operation_ == Operation::max) {
            each(n, [=](int64_t i) {
                dx[i] = largest(x, many, i) == which ? static_cast<float>(dy[i]) : 0.0F;
            });
        } else if (stable_) {
            each(n, [=](int64_t i) {
                float product = 1;
                for (size_t k = 0; k < many; ++k)
                    if (k != which) product *= x[k][i];
                dx[i] = product * dy[i];
            });
        } else {
            each(n, [=](int64_t i) {
                float product = x[0][i];
                for (size_t k = 1; k < many; ++k) product *= x[k][i];
                dx[i] = product / x[which][i] * dy[i];
            });
        }
    }

    // A sum passes its gradient unchanged to each of its terms, but for the coefficient.
    void pass_on(Layer& layer, size_t which) const {
        const Tensor& dy = layer.tops[0]->diff;
        const float c = coefficients_[which];
        if (c == 1.0F)
            layer.bottoms[which]->diff.copy(dy);
        else
            map(dy, layer.bottoms[which]->diff, true, [=](float d) { return c * d; });
    }

    // Of equal values the later one counts.
    template <class T>
    static size_t largest(const T* const* x, size_t many, int64_t i) {
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
};
}  // namespace

std::unique_ptr<Kernel> make_eltwise() {
    return make<Eltwise>();
}

}  // namespace sn
