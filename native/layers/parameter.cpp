// A learnable blob as a top (Caffe: parameter_layer.hpp).
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"

namespace sn {

namespace {
class Parameter final : public Kernel {
   public:
    void reshape(Layer& layer) override { layer.tops[0]->data.share(layer.params[0]->data); }
    void forward(Layer&) override {}
    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        if (!layer.learns[0]) return;
        const float* dy = layer.top_diff();
        float* sum = layer.param_diff(0);
        for (int64_t i = 0; i < layer.params[0]->count(); ++i) sum[i] += dy[i];
    }
};
}  // namespace

std::unique_ptr<Kernel> make_parameter() {
    return make<Parameter>();
}

}  // namespace sn
