// max(x, 0), or with a slope below zero (Caffe: relu_layer.cpp).
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"
#include "../engine/primitive.hpp"

namespace sn {

namespace {
class ReLU final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        slope_ = static_cast<float>(layer.options.real("negative_slope"));
        desc_ = {};
    }
    void forward(Layer& layer) override {
        if (is_narrow(layer.bottoms[0]->data)) return forward_narrow(layer);
        const float slope = slope_;
        map(layer.bottoms[0]->data, layer.tops[0]->data, true,
            [=](float x) { return x > 0 ? x : slope * x; });
    }
    // In place the bottom holds the result; its sign is the input's as long as the slope is
    // not negative, as Caffe has it too.
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        if (is_narrow(layer.bottoms[0]->data)) return backward_narrow(layer);
        const float slope = slope_;
        map(layer.tops[0]->diff, layer.bottoms[0]->data, layer.bottoms[0]->diff, true,
            [=](float dy, float x) { return dy * (x > 0 ? 1.0F : slope); });
    }
    std::optional<float> relu_slope(const Layer& layer) const override {
        return static_cast<float>(layer.options.real("negative_slope", 0));
    }
    bool looks_back(const Layer& layer, const Blob& blob) const override {
        return &blob == layer.bottoms[0];
    }

   private:
    static bool is_narrow(const Tensor& values) {
        return values.newest().get_data_type() != dnnl::memory::data_type::f32;
    }

    // Primitives for the layout and type that the input comes in: the same at every pass.
    void make(const Layer& layer) {
        const auto desc = layer.bottoms[0]->data.newest();
        if (desc == desc_) return;
        const auto algorithm = dnnl::algorithm::eltwise_relu;
        const dnnl::eltwise_forward::primitive_desc forward(
            cpu(), dnnl::prop_kind::forward_training, algorithm, desc, desc, slope_, 0.0F,
            attributes());
        forward_ = dnnl::eltwise_forward(forward);
        if (layer.backward)
            backward_ = dnnl::eltwise_backward(
                {cpu(), algorithm, desc, desc, desc, slope_, 0.0F, forward, attributes()});
        desc_ = desc;
    }

    void forward_narrow(Layer& layer) {
        make(layer);
        run(forward_, {{DNNL_ARG_SRC, layer.bottoms[0]->data.read(desc_)},
                       {DNNL_ARG_DST, layer.tops[0]->data.write(desc_)}});
    }

    void backward_narrow(Layer& layer) {
        make(layer);
        run(backward_, {{DNNL_ARG_SRC, layer.bottoms[0]->data.read(desc_)},
                        {DNNL_ARG_DIFF_DST, layer.tops[0]->diff.read(desc_)},
                        {DNNL_ARG_DIFF_SRC, layer.bottoms[0]->diff.write(desc_)}});
    }

    float slope_ = 0;
    dnnl::memory::desc desc_;
    dnnl::eltwise_forward forward_;
    dnnl::eltwise_backward backward_;
};
}  // namespace

std::unique_ptr<Kernel> make_relu() {
    return make<ReLU>();
}

}  // namespace sn
