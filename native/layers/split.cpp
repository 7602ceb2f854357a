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
    }
    void forward(Layer&) override {}
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        Tensor& sum = layer.bottoms[0]->diff;
        if (are_narrow(layer)) return add_narrow(layer, sum);
        const auto plus = [](float a, float b) { return a + b; };
        if (layer.tops.size() == 1) {
            sum.copy(layer.tops[0]->diff);
            return;
        }
        map(layer.tops[0]->diff, layer.tops[1]->diff, sum, true, plus);
        for (size_t i = 2; i < layer.tops.size(); ++i)
            map(sum, layer.tops[i]->diff, sum, true, plus);
    }

   private:
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

    std::vector<dnnl::memory::desc> layouts_;
    dnnl::sum adding_;
};
}  // namespace

std::unique_ptr<Kernel> make_split() {
    return make<Split>();
}

}  // namespace sn
