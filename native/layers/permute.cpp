// The axes in another order (permute_layer.cpp of SSD): one reorder from the layout of the
// input.
#include <algorithm>

#include "../engine/layer.hpp"
#include "../engine/move.hpp"
#include "../engine/net.hpp"
#include "formats.hpp"
#include "rows.hpp"

namespace sn {

using dnnl::memory;

namespace {
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

class Permute final : public Kernel {
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

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

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
}  // namespace

std::unique_ptr<Kernel> make_permute() {
    return make<Permute>();
}

}  // namespace sn
