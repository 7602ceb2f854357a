// One blob for several readers: the copies look at the same values, their gradients add up
// (Caffe: split_layer.cpp).
#include <algorithm>

#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"
#include "../engine/primitive.hpp"

namespace sn {

namespace {
class Split final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        for (Blob* top : layer.tops) top->data.share(layer.bottoms[0]->data);
        layouts_.clear();
        if (layer.gate) slope_ = *layer.gate->kernel->relu_slope(*layer.gate);
    }
    Sign sign() const override { return Sign::in_bottom; }
    bool gates(const Layer& layer) const override { return layer.tops.size() > 1; }
    bool looks_back(const Layer& layer, const Blob& blob) const override {
        return layer.gate && &blob == layer.bottoms[0];
    }
    void forward(Layer&) override {}
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        Tensor& sum = layer.bottoms[0]->diff;
        if (are_narrow(layer)) return add_narrow(layer, sum);
        if (layer.tops.size() == 1)
            sum.copy(layer.tops[0]->diff);
        else
            add(layer, sum);
    }

   private:
    // The last sum passes the ReLU before this layer, where there is one.
    void add(const Layer& layer, Tensor& sum) const {
        const auto plus = [](float a, float b) { return a + b; };
        const size_t last = layer.tops.size() - 1;
        for (size_t i = 1; i <= last; ++i) {
            const Tensor &before = i == 1 ? layer.tops[0]->diff : sum, &diff = layer.tops[i]->diff;
            if (i == last && layer.gated)
                map(before, diff, layer.bottoms[0]->data, sum, true,
                    [slope = slope_](float a, float b, float y) {
                        return (a + b) * (y > 0 ? 1.0F : slope);
                    });
            else
                map(before, diff, sum, true, plus);
        }
    }

    static bool are_narrow(const Layer& layer) {
        return std::all_of(layer.tops.begin(), layer.tops.end(), [](const Blob* top) {
            return top->diff.newest().get_data_type() != dnnl::memory::data_type::f32;
        });
    }

    // Each is read where it lies, and the sum is rounded once.
    void add_narrow(const Layer& layer, Tensor& sum) {
        std::vector<dnnl::memory::desc> layouts;
        for (const Blob* top : layer.tops) layouts.push_back(top->diff.newest());
        if (layouts != layouts_) {
            const std::vector<float> ones(layouts.size(), 1.0F);
            adding_ = dnnl::sum({cpu(), layouts[0], ones, layouts, attributes()});
            layouts_ = layouts;
        }
        Arguments arguments = {{DNNL_ARG_DST, sum.write(layouts_[0])}};
        for (size_t i = 0; i < layouts_.size(); ++i)
            arguments.emplace(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i),
                              layer.tops[i]->diff.read(layouts_[i]));
        run(adding_, arguments);
    }

    float slope_ = 0;
    std::vector<dnnl::memory::desc> layouts_;
    dnnl::sum adding_;
};
}  // namespace

std::unique_ptr<Kernel> make_split() {
    return make<Split>();
}

}  // namespace sn
