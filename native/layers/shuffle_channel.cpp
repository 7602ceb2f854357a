// Channels redistributed among groups (shuffle_channel_layer.cpp of ShuffleNet).
#include "../engine/layer.hpp"
#include "../engine/primitive.hpp"
#include "formats.hpp"
#include "rows.hpp"

namespace sn {

using dnnl::memory;

namespace {
// Channel i · columns + j becomes channel j · rows + i.
class Deal {
   public:
    void reshape(int64_t num, int64_t rows, int64_t columns, int64_t plane) {
        num_ = num, rows_ = rows, columns_ = columns, plane_ = plane;
        layout_ = {};
    }

    void operator()(const Tensor& from, Tensor& to) {
        const auto layout = from.layout();
        if (from.shape() == to.shape() && alike(layout, from.shape()))
            shuffle(layout, from, to);
        else
            copy(from.read(), to.write());
    }

   private:
    void shuffle(const memory::desc& layout, const Tensor& from, Tensor& to) {
        if (layout != layout_) {
            layout_ = layout;
            primitive_ = dnnl::shuffle_forward(dnnl::shuffle_forward::primitive_desc(
                cpu(), dnnl::prop_kind::forward_inference, layout, layout, 1,
                static_cast<int>(columns_), attributes()));
        }
        run(primitive_, {{DNNL_ARG_SRC, from.read(layout)}, {DNNL_ARG_DST, to.write(layout)}});
    }

    void copy(const float* x, float* y) const {
        const int64_t rows = rows_, columns = columns_, plane = plane_;
        parallel(
            num_ * rows * columns,
            [=](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k) {
                    const int64_t channel = k % (rows * columns), first = k - channel;
                    const int64_t source = channel % rows * columns + channel / rows;
                    std::copy_n(x + (first + source) * plane, plane, y + k * plane);
                }
            },
            plane_);
    }

    int64_t num_ = 0, rows_ = 1, columns_ = 1, plane_ = 0;
    memory::desc layout_;
    dnnl::shuffle_forward primitive_;
};

class ShuffleChannel final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const int64_t group = layer.options.integer("group");
        const Shape& shape = layer.tops[0]->shape();  // always 4 axes
        const int64_t each = shape[1] / group, plane = shape[2] * shape[3];
        there_.reshape(shape[0], group, each, plane);
        back_.reshape(shape[0], each, group, plane);
    }
    void forward(Layer& layer) override { there_(layer.bottoms[0]->data, layer.tops[0]->data); }
    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        if (layer.propagate[0]) back_(layer.tops[0]->diff, layer.bottoms[0]->diff);
    }

   private:
    Deal there_, back_;
};
}  // namespace

std::unique_ptr<Kernel> make_shuffle_channel() {
    return make<ShuffleChannel>();
}

}  // namespace sn
