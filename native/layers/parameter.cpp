// A learnable blob as a top (Caffe: parameter_layer.hpp).
#include <algorithm>

#include "../engine/net.hpp"

namespace sn {

namespace {
class Parameter final : public Kernel {
   public:
    // A layer in place, maybe on a view of the top, would change the parameter: it gets a copy.
    void reshape(Layer& layer) override {
        const auto& all = layer.net->layers;
        copies_ = std::any_of(all.begin(), all.end(), [&](const Layer& other) {
            return other.index > layer.index && !other.bottoms.empty() && !other.tops.empty() &&
                   other.in_place() && other.tops[0]->count() == layer.params[0]->count();
        });
        if (!copies_) layer.tops[0]->data.share(layer.params[0]->data);
    }
    void forward(Layer& layer) override {
        if (copies_) layer.tops[0]->data.copy(layer.params[0]->data);
    }
    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        if (!layer.learns[0]) return;
        const float* dy = layer.top_diff();
        float* sum = layer.param_diff(0);
        for (int64_t i = 0; i < layer.params[0]->count(); ++i) sum[i] += dy[i];
    }

   private:
    bool copies_ = false;
};
}  // namespace

std::unique_ptr<Kernel> make_parameter() {
    return make<Parameter>();
}

}  // namespace sn
