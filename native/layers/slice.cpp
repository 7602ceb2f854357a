// A blob cut into tops along an axis (Caffe: slice_layer.cpp).
#include "../engine/layer.hpp"
#include "pieces.hpp"

namespace sn {

namespace {
class Slice final : public Kernel {
   public:
    std::optional<Strided> moves(const Layer& layer, const Blob& top) const override {
        const Shape &whole = layer.shape(), &part = top.shape();
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        const int64_t inner = count(whole, axis + 1, whole.size());
        int64_t before = 0;
        for (const Blob* one : layer.tops) {
            if (one == &top) break;
            before += one->shape()[axis];
        }
        return Strided{before * inner,
                       {{count(part, 0, axis), whole[axis] * inner}, {part[axis] * inner, 1}},
                       1};
    }

    void reshape(Layer& layer) override {
        std::vector<Shape> shapes;
        data_.clear(), diff_.clear();
        for (Blob* top : layer.tops) {
            shapes.push_back(top->shape());
            data_.push_back(&top->data);
            diff_.push_back(&top->diff);
        }
        if (one()) {
            layer.tops[0]->data.share(layer.bottoms[0]->data);
            layer.tops[0]->diff.share(layer.bottoms[0]->diff);
        }
        pieces_.reshape(layer.shape(), shapes, static_cast<size_t>(layer.options.integer("axis")));
    }
    void forward(Layer& layer) override {
        if (!one()) pieces_.cut(layer.bottoms[0]->data, data_);
    }
    bool looks_back(const Layer&, Role, size_t) const override { return false; }
    void backward(Layer& layer) override {
        if (!one() && layer.propagate[0]) pieces_.join(diff_, layer.bottoms[0]->diff);
    }

   private:
    bool one() const { return data_.size() == 1; }

    std::vector<Tensor*> data_, diff_;
    Pieces pieces_;
};
}  // namespace

std::unique_ptr<Kernel> make_slice() {
    return make<Slice>();
}

}  // namespace sn
