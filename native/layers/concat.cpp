// Bottoms one after the other along an axis (Caffe: concat_layer.cpp).
#include "../engine/layer.hpp"
#include "pieces.hpp"

namespace sn {

namespace {
class Concat final : public Kernel {
   public:
    std::optional<Strided> moves(const Layer& layer, const Blob& top) const override {
        if (layer.bottoms.size() > 1) return std::nullopt;
        return as_they_are(top.count());
    }

    void reshape(Layer& layer) override {
        std::vector<Shape> shapes;
        data_.clear(), diff_.clear();
        for (size_t i = 0; i < layer.bottoms.size(); ++i) {
            shapes.push_back(layer.shape(i));
            data_.push_back(&layer.bottoms[i]->data);
            diff_.push_back(layer.propagate[i] ? &layer.bottoms[i]->diff : nullptr);
        }
        if (one()) {
            layer.tops[0]->data.share(layer.bottoms[0]->data);
            layer.tops[0]->diff.share(layer.bottoms[0]->diff);
        }
        pieces_.reshape(layer.tops[0]->shape(), shapes,
                        static_cast<size_t>(layer.options.integer("axis")));
    }
    void forward(Layer& layer) override {
        if (!one()) pieces_.join(data_, layer.tops[0]->data);
    }
    bool looks_back(const Layer&, Role, size_t) const override { return false; }
    void backward(Layer& layer) override {
        if (!one()) pieces_.cut(layer.tops[0]->diff, diff_);
    }

   private:
    bool one() const { return data_.size() == 1; }

    std::vector<Tensor*> data_, diff_;
    Pieces pieces_;
};
}  // namespace

std::unique_ptr<Kernel> make_concat() {
    return make<Concat>();
}

}  // namespace sn
