// Blobs put together, cut, and shared.
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"
#include "../engine/move.hpp"
#include "../engine/primitive.hpp"
#include "formats.hpp"
#include "rows.hpp"

namespace sn {

using dnnl::memory;

namespace {
// A blob and the parts it falls into along an axis: what Concat and Slice share.
class Pieces {
   public:
    void reshape(const Shape& whole, const std::vector<Shape>& parts, size_t axis);
    void join(const std::vector<Tensor*>& parts, Tensor& whole);
    // Parts that are null are left out.
    void cut(const Tensor& whole, const std::vector<Tensor*>& parts);

   private:
    bool join_int8(const std::vector<Tensor*>& parts, Tensor& whole);
    bool join_blocked(const std::vector<Tensor*>& parts, Tensor& whole);
    bool cut_blocked(const Tensor& whole, Tensor& part, size_t i);
    dnnl::memory::desc window(const dnnl::memory::desc& whole, size_t i) const;
    void make(const std::vector<dnnl::memory::desc>& layouts);

    Shape whole_;
    std::vector<Shape> parts_, offsets_;
    size_t axis_ = 0;
    int64_t outer_ = 0, inner_ = 0;

    // The layouts that join was last made for.
    std::vector<dnnl::memory::desc> layouts_, sources_;
    dnnl::memory::desc target_;
    dnnl::concat concat_;
    std::vector<Move> cuts_;
};

void Pieces::reshape(const Shape& whole, const std::vector<Shape>& parts, size_t axis) {
    whole_ = whole, parts_ = parts, axis_ = axis;
    outer_ = count(whole, 0, axis);
    inner_ = count(whole, axis + 1, whole.size());
    offsets_.assign(parts.size(), Shape(whole.size(), 0));
    for (size_t i = 1; i < parts.size(); ++i)
        offsets_[i][axis] = offsets_[i - 1][axis] + parts[i - 1][axis];
    layouts_.clear();
    cuts_.assign(parts.size(), {});
}

// The part of a blocked whole where part i lies; empty where it begins or ends inside a block.
memory::desc Pieces::window(const memory::desc& whole, size_t i) const {
    const auto part = whole.submemory_desc(parts_[i], offsets_[i], true);
    return part ? part : memory::desc();
}

// One primitive for these layouts; none (an empty target) where plain rows are faster.
void Pieces::make(const std::vector<memory::desc>& layouts) {
    layouts_ = layouts;
    sources_.clear();
    target_ = {};
    std::optional<memory::desc> target;
    for (size_t i = 0; i < layouts.size() && !target; ++i) target = alike(layouts[i], whole_);
    if (!target) return;
    for (size_t i = 0; i < layouts.size(); ++i) {
        if (count(parts_[i]) == 0) return;
        if (window(*target, i).is_zero()) return;
    }
    sources_ = layouts;
    target_ = *target;
    concat_ = dnnl::concat(dnnl::concat::primitive_desc(cpu(), target_, static_cast<int>(axis_),
                                                        sources_, attributes()));
}

// The layout of the newest values; in float32 unless all are bfloat16.
std::vector<memory::desc> layouts_of(const std::vector<Tensor*>& parts) {
    std::vector<memory::desc> found;
    bool narrow = true;
    for (const Tensor* part : parts) {
        found.push_back(part->newest());
        narrow = narrow && found.back().get_data_type() != memory::data_type::f32;
    }
    if (!narrow)
        for (size_t i = 0; i < parts.size(); ++i) found[i] = parts[i]->layout();
    return found;
}

bool Pieces::join_blocked(const std::vector<Tensor*>& parts, Tensor& whole) {
    const auto layouts = layouts_of(parts);
    if (layouts != layouts_) make(layouts);
    if (target_.is_zero()) return false;
    Arguments arguments;
    for (size_t i = 0; i < parts.size(); ++i)
        arguments.add(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), parts[i]->read(sources_[i]));
    arguments.add(DNNL_ARG_DST, whole.write(target_));
    run(concat_, arguments);
    return true;
}

// Numbers of eight bits that are multiples of one step.
bool Pieces::join_int8(const std::vector<Tensor*>& parts, Tensor& whole) {
    std::vector<Int8> found;
    for (const Tensor* part : parts) {
        const auto one = part->int8();
        if (!one || (!found.empty() && one->step != found[0].step)) return false;
        if (!found.empty() && one->desc.get_data_type() != found[0].desc.get_data_type())
            return false;
        found.push_back(*one);
    }
    std::vector<memory::desc> layouts;
    for (const Int8& one : found) layouts.push_back(one.desc);
    if (layouts != layouts_) make(layouts);
    if (target_.is_zero()) return false;
    Arguments arguments;
    for (size_t i = 0; i < parts.size(); ++i)
        arguments.add(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), parts[i]->read(found[i]));
    arguments.add(DNNL_ARG_DST, whole.write(Int8{target_, found[0].step}));
    run(concat_, arguments);
    return true;
}

void Pieces::join(const std::vector<Tensor*>& parts, Tensor& whole) {
    if (join_int8(parts, whole)) return;
    if (join_blocked(parts, whole)) return;
    float* to = whole.write();
    const int64_t step = whole_[axis_] * inner_;
    for (size_t i = 0; i < parts.size(); ++i) {
        const int64_t width = parts_[i][axis_] * inner_;
        copy_rows(parts[i]->read(), width, to + offsets_[i][axis_] * inner_, step, outer_, width);
    }
}

bool Pieces::cut_blocked(const Tensor& whole, Tensor& part, size_t i) {
    const auto layout = whole.newest();
    const auto target = alike(layout, parts_[i]);
    if (!target || part.count() == 0) return false;
    const auto from = window(layout, i);
    if (from.is_zero()) return false;
    cuts_[i].run({from, cpu(), whole.read(layout).get_data_handle()}, part.write(*target));
    return true;
}

void Pieces::cut(const Tensor& whole, const std::vector<Tensor*>& parts) {
    const int64_t step = whole_[axis_] * inner_;
    for (size_t i = 0; i < parts.size(); ++i) {
        if (!parts[i] || cut_blocked(whole, *parts[i], i)) continue;
        const int64_t width = parts_[i][axis_] * inner_;
        copy_rows(whole.read() + offsets_[i][axis_] * inner_, step, parts[i]->write(), width,
                  outer_, width);
    }
}

// Bottoms one after the other along an axis (Caffe: concat_layer.cpp).
class Concat final : public LinearKernel {
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
    void backward(Layer& layer) override {
        if (!one()) pieces_.cut(layer.tops[0]->diff, diff_);
    }

   private:
    bool one() const { return data_.size() == 1; }

    std::vector<Tensor*> data_, diff_;
    Pieces pieces_;
};

// A blob cut into tops along an axis (Caffe: slice_layer.cpp).
class Slice final : public LinearKernel {
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
    void backward(Layer& layer) override {
        if (!one() && layer.propagate[0]) pieces_.join(diff_, layer.bottoms[0]->diff);
    }

   private:
    bool one() const { return data_.size() == 1; }

    std::vector<Tensor*> data_, diff_;
    Pieces pieces_;
};

// One blob for several readers: the copies look at the same values, their gradients add up
// (Caffe: split_layer.cpp).
class Split final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        for (Blob* top : layer.tops) top->data.share(layer.bottoms[0]->data);
        if (layer.gate) slope_ = *layer.gate->kernel->relu_slope(*layer.gate);
    }
    bool rounds(const Layer& layer, const Blob&) const override {
        return leaves_to_rounding(layer);
    }
    std::optional<Strided> moves(const Layer&, const Blob& top) const override {
        return as_they_are(top.count());
    }
    Sign sign() const override { return Sign::in_bottom; }
    bool only_splits() const override { return true; }
    bool gates(const Layer& layer) const override { return layer.tops.size() > 1; }
    bool looks_back(const Layer& layer, Role role, size_t) const override {
        return layer.gate && role == Role::bottom;
    }
    void forward(Layer&) override {}
    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        Tensor& sum = layer.bottoms[0]->diff;
        if (layer.tops.size() == 1)
            sum.copy(layer.tops[0]->diff);
        else
            add(layer, sum);
    }

   private:
    // The sum is rounded once, after it has passed the ReLU before this layer, where there is one.
    void add(const Layer& layer, Tensor& sum) const {
        std::vector<const Tensor*> tensors;
        for (const Blob* top : layer.tops) tensors.push_back(&top->diff);
        const auto desc = walk(tensors, true);
        std::vector<dnnl::memory> terms;
        for (const Tensor* tensor : tensors) terms.push_back(tensor->read(desc));
        const auto gate = layer.gated ? layer.bottoms[0]->data.read(desc) : dnnl::memory();
        const auto to = sum.write(desc);
        typed(desc, [&](auto type) {
            using T = decltype(type);
            std::vector<const T*> x;
            for (const auto& term : terms) x.push_back(values_of<T>(term));
            const std::vector<float> ones(x.size(), 1.0F);
            if (!gate)
                return add_up(x, ones, values_of<T>(to), values(desc),
                              [](float total, int64_t) { return total; });
            add_up(x, ones, values_of<T>(to), values(desc),
                   [y = values_of<T>(gate), slope = slope_](float total, int64_t i) {
                       return total * (y[i] > 0 ? 1.0F : slope);
                   });
        });
    }

    float slope_ = 0;
};
}  // namespace

REGISTER_LAYER(Concat, Concat);
REGISTER_LAYER(Slice, Slice);
REGISTER_LAYER(Split, Split);

}  // namespace sn
