// One blob for several readers: the copies look at the same values, their gradients add up
// (Caffe: split_layer.cpp).
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"

namespace sn {

namespace {
class Split final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        for (Blob* top : layer.tops) top->data.share(layer.bottoms[0]->data);
        if (layer.gate) slope_ = *layer.gate->kernel->relu_slope(*layer.gate);
    }
    bool rounds(const Layer& layer, const Blob&) const override {
        return leaves_to_rounding(layer);
    }
    std::optional<Strided> moves(const Layer&, const Blob& top) const override {
        return as_they_are(top.count());
    }
    Sign sign() const override { return Sign::in_bottom; }
    bool only_splits() const override { return true; }
    bool gates(const Layer& layer) const override { return layer.tops.size() > 1; }
    bool looks_back(const Layer& layer, Role role, size_t) const override {
        return layer.gate && role == Role::bottom;
    }
    void forward(Layer&) override {}
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        Tensor& sum = layer.bottoms[0]->diff;
        if (layer.tops.size() == 1)
            sum.copy(layer.tops[0]->diff);
        else
            add(layer, sum);
    }

   private:
    // The sum is rounded once, after it has passed the ReLU before this layer, where there is one.
    void add(const Layer& layer, Tensor& sum) const {
        std::vector<const Tensor*> tensors;
        for (const Blob* top : layer.tops) tensors.push_back(&top->diff);
        const auto desc = walk(tensors, true);
        std::vector<dnnl::memory> terms;
        for (const Tensor* tensor : tensors) terms.push_back(tensor->read(desc));
        const auto gate = layer.gated ? layer.bottoms[0]->data.read(desc) : dnnl::memory();
        const auto to = sum.write(desc);
        typed(desc, [&](auto type) {
            using T = decltype(type);
            std::vector<const T*> x;
            for (const auto& term : terms) x.push_back(values_of<T>(term));
            const std::vector<float> ones(x.size(), 1.0F);
            if (!gate)
                return add_up(x, ones, values_of<T>(to), values(desc),
                              [](float total, int64_t) { return total; });
            add_up(x, ones, values_of<T>(to), values(desc),
                   [y = values_of<T>(gate), slope = slope_](float total, int64_t i) {
                       return total * (y[i] > 0 ? 1.0F : slope);
                   });
        });
    }

    float slope_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_split() {
    return make<Split>();
}

}  // namespace sn
