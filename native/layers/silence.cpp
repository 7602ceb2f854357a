// Reads blobs that no other layer reads (Caffe: silence_layer.cpp).
#include <algorithm>

#include "../engine/layer.hpp"

namespace sn {

namespace {
class Silence final : public Kernel {
   public:
    void forward(Layer&) override {}
    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        for (size_t i = 0; i < layer.bottoms.size(); ++i)
            if (layer.propagate[i])
                std::fill_n(layer.bottom_diff(i), layer.bottoms[i]->count(), 0.0F);
    }
};
}  // namespace

std::unique_ptr<Kernel> make_silence() {
    return make<Silence>();
}

}  // namespace sn
