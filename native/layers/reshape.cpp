// The same values, and gradients, under another shape (Caffe: reshape_layer.cpp,
// flatten_layer.cpp).
#include "../engine/layer.hpp"

namespace sn {

namespace {
class Reshape final : public Kernel {
   public:
    bool rounds(const Layer& layer, const Blob&) const override {
        return leaves_to_rounding(layer);
    }
    std::optional<Strided> moves(const Layer&, const Blob& top) const override {
        return as_they_are(top.count());
    }
    void reshape(Layer& layer) override {
        layer.tops[0]->data.share(layer.bottoms[0]->data);
        layer.tops[0]->diff.share(layer.bottoms[0]->diff);
    }
    void forward(Layer&) override {}
    bool looks_back(const Layer&, Role, size_t) const override { return false; }
};
}  // namespace

std::unique_ptr<Kernel> make_reshape() {
    return make<Reshape>();
}
std::unique_ptr<Kernel> make_flatten() {
    return make<Reshape>();
}

}  // namespace sn
