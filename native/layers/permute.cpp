// Axes and channels in another order.
#include <algorithm>

#include "../engine/layer.hpp"
#include "../engine/move.hpp"
#include "../engine/net.hpp"
#include "../engine/primitive.hpp"
#include "formats.hpp"
#include "rows.hpp"

namespace sn {

using dnnl::memory;

namespace {
// The axes in another order (permute_layer.cpp of SSD): one reorder from the layout of the
// input.
// to[…] = from[…] with axis i of `to` being axis order[i] of `from`; for blobs with more axes
// than oneDNN describes.
void permute_rows(const float* from, const Shape& shape, const std::vector<int64_t>& order,
                  float* to, bool back) {
    const size_t axes = shape.size();
    Shape steps(axes, 1), at(axes, 0);
    for (size_t i = axes; i-- > 1;) steps[i - 1] = steps[i] * shape[i];
    const int64_t total = count(shape);
    for (int64_t k = 0, place = 0; k < total; ++k) {
        if (back)
            to[place] = from[k];
        else
            to[k] = from[place];
        for (size_t i = axes; i-- > 0;) {
            const auto axis = static_cast<size_t>(order[i]);
            place += steps[axis];
            if (++at[i] < shape[axis]) break;
            place -= at[i] * steps[axis];
            at[i] = 0;
        }
    }
}

class Permute final : public LinearKernel {
   public:
    std::optional<Strided> moves(const Layer& layer, const Blob&) const override {
        return permuted(layer.shape(), layer.options.integers("order"));
    }

    bool rounds(const Layer& layer, const Blob&) const override {
        return leaves_to_rounding(layer);
    }

    void reshape(Layer& layer) override {
        order_ = layer.options.integers("order");
        there_ = {}, back_ = {};
        forward_.assign(order_.size(), 0), backward_.assign(order_.size(), 0);
        for (size_t i = 0; i < order_.size(); ++i) {
            forward_[static_cast<size_t>(order_[i])] = static_cast<int>(i);
            backward_[i] = static_cast<int>(order_[i]);
        }
        stays_ = order_ == std::vector<int64_t>{0, 3, 1, 2} && !layer.has_gradients() &&
                 !goes_into_view(layer, *layer.tops[0]);
        small_ = order_.size() <= 12 && !order_.empty() && layer.bottoms[0]->count() > 0;
    }

    void forward(Layer& layer) override {
        const Tensor& x = layer.bottoms[0]->data;
        if (!small_) {
            permute_rows(x.read(), x.shape(), order_, layer.top(), false);
            return;
        }
        Blob& top = *layer.tops[0];
        if (top.rounded && x.is_rounded()) {
            const auto from = retyped(x.plain(), memory::data_type::bf16),
                       to = retyped(top.data.plain(), memory::data_type::bf16);
            auto* values = const_cast<uint16_t*>(x.read_rounded());
            there_.run({from.permute_axes(forward_), cpu(), values},
                       {to, cpu(), top.data.write_rounded()});
            return;
        }
        const auto layout = x.layout(), turned = layout.permute_axes(forward_);
        there_.run({turned, cpu(), x.read(layout).get_data_handle()},
                   top.data.write(stays_ && is_plain(layout) ? turned : top.data.plain()));
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const Tensor& dy = layer.tops[0]->diff;
        if (!small_) {
            permute_rows(dy.read(), layer.shape(), order_, layer.bottom_diff(), true);
            return;
        }
        const auto layout = dy.layout();
        back_.run({layout.permute_axes(backward_), cpu(), dy.read(layout).get_data_handle()},
                  layer.bottoms[0]->diff.write(layer.bottoms[0]->data.layout()));
    }

   private:
    // Whether a layer that moves values reads a blob, or copies of it: it takes plain rows.
    static bool goes_into_view(const Layer& layer, const Blob& blob) {
        const auto& all = layer.net->layers;
        return std::any_of(all.begin(), all.end(), [&](const Layer& one) {
            if (std::count(one.bottoms.begin(), one.bottoms.end(), &blob) == 0) return false;
            if (!one.kernel->only_splits()) return one.kernel->moves(one, *one.tops[0]).has_value();
            return std::any_of(one.tops.begin(), one.tops.end(), [&](const Blob* top) {
                return top != &blob && goes_into_view(one, *top);
            });
        });
    }

    // Whether channels that were last stay there in memory, as convolutions leave them.
    bool stays_ = false;
    std::vector<int64_t> order_;
    std::vector<int> forward_, backward_;  // where each axis goes
    bool small_ = false;
    Move there_, back_;
};

// Channels redistributed among groups (shuffle_channel_layer.cpp of ShuffleNet).
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
        parallel_each(num_ * rows * columns, plane_, [=](int64_t k) {
            const int64_t channel = k % (rows * columns), first = k - channel;
            const int64_t source = channel % rows * columns + channel / rows;
            std::copy_n(x + (first + source) * plane, plane, y + k * plane);
        });
    }

    int64_t num_ = 0, rows_ = 1, columns_ = 1, plane_ = 0;
    memory::desc layout_;
    dnnl::shuffle_forward primitive_;
};

class ShuffleChannel final : public LinearKernel {
   public:
    void reshape(Layer& layer) override {
        const int64_t group = layer.options.integer("group");
        const Shape& shape = layer.tops[0]->shape();  // always 4 axes
        const int64_t each = shape[1] / group, plane = shape[2] * shape[3];
        there_.reshape(shape[0], group, each, plane);
        back_.reshape(shape[0], each, group, plane);
    }
    void forward(Layer& layer) override { there_(layer.bottoms[0]->data, layer.tops[0]->data); }

    void backward(Layer& layer) override {
        if (layer.propagate[0]) back_(layer.tops[0]->diff, layer.bottoms[0]->diff);
    }

   private:
    Deal there_, back_;
};
}  // namespace

REGISTER_LAYER(Permute, Permute);
REGISTER_LAYER(Transpose, Permute);
REGISTER_LAYER(ShuffleChannel, ShuffleChannel);

}  // namespace sn
