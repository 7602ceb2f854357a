// Maxima and means of windows, and of pyramids of them.
#include <algorithm>

#include "../engine/nan.hpp"
#include "../engine/parallel.hpp"
#include "../engine/primitive.hpp"
#include "global_mean.hpp"
#include "narrow_pool.hpp"
#include "plane_pool.hpp"

namespace sn {

using dnnl::memory;
using dnnl::pooling_backward;
using dnnl::pooling_forward;

namespace {
// The maximum, the average or a random pick of each window (Caffe: pooling_layer.cpp).
// oneDNN computes the poolings that it defines as Caffe does; the rest are plain loops.
// oneDNN's name for this pooling; none where its results would differ.
dnnl::algorithm algorithm_of(const PlanePool& pool) {
    const auto none = dnnl::algorithm::undef;
    const Span spans[] = {pool.rows(), pool.columns()};
    for (const Span& span : spans)
        if (std::max({span.kernel, span.stride, span.pad}) > 4096) return none;
    if (pool.has_empty()) return none;
    if (pool.method() == PlanePool::Method::max) return dnnl::algorithm::pooling_max;
    if (pool.method() != PlanePool::Method::ave) return none;
    // Without padding Caffe divides by the part of a window inside the image; with padding by the
    // whole window, if it ends inside the padding.
    bool padded = false, whole = true;
    for (const Span& span : spans) {
        padded = padded || span.pad > 0;
        whole = whole && span.padded(span.outputs - 1) == span.kernel;
    }
    if (!padded) return dnnl::algorithm::pooling_avg_exclude_padding;
    return whole ? dnnl::algorithm::pooling_avg_include_padding : none;
}

class Pooling final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Shape& top = layer.tops[0]->shape();
        pool_ = PlanePool(layer, "", top[2], top[3]);
        desc_ = narrow_ = {};
        workspace_ = {};
        const bool nothing = layer.bottoms[0]->count() == 0 || layer.tops[0]->count() == 0;
        algorithm_ =
            nothing || layer.tops.size() > 1 ? dnnl::algorithm::undef : algorithm_of(pool_);
        primitive_ =
            algorithm_ != dnnl::algorithm::undef && make(layer, layer.bottoms[0]->data.plain());
        const bool keeps =
            !primitive_ && pool_.picks() && (layer.backward || layer.tops.size() > 1);
        picked_.resize(keeps ? static_cast<size_t>(layer.tops[0]->count()) : 0);
        passed_.reshape(layer.gate ? top : Shape{0});
        if (layer.fused_relu) slope_ = *layer.fused_relu->kernel->relu_slope(*layer.fused_relu);
        clips_ = layer.gate && layer.gate->kernel->relu_slope(*layer.gate) == 0.0F;
    }

    bool only_reads() const override { return true; }
    Sign sign() const override { return Sign::in_top; }
    // A maximum is positive where the value that it came from is, as long as nothing wrote to it.
    bool gates(const Layer& layer) const override {
        return clips_ && pool_.method() == PlanePool::Method::max && layer.tops.size() == 1 &&
               !layer.tops[0]->data.storage().is_exposed();
    }

    std::optional<double> products(const Layer& layer) const override {
        return static_cast<double>(layer.bottoms[0]->count() + layer.tops[0]->count());
    }

    Followers followers(const Layer& layer) const override {
        const bool joins = !layer.has_gradients() && layer.tops.size() == 1 &&
                           layer.options.has("method") && layer.options.text("method") == "max";
        return joins ? Followers::relu : Followers::none;
    }
    bool fuses() const override { return true; }

    // oneDNN's maxima, and those of narrow numbers, pass NaN over.
    void forward(Layer& layer) override {
        const bool plain =
            algorithm_ == dnnl::algorithm::pooling_max && has_nan(layer.bottoms[0]->data);
        if (!plain && forward_narrow(layer)) return;
        const bool is_global = covers_planes(layer) && layer.bottoms[0]->count() > 0;
        if (is_global && pool_.method() == PlanePool::Method::ave)
            return mean_of_channels(layer.bottoms[0]->data, layer.tops[0]->data);
        if (is_global && !plain && algorithm_ == dnnl::algorithm::pooling_max &&
            is_plain(layer.bottoms[0]->data.newest()))
            largest_of_planes(layer);
        else
            plain ? forward_plain(layer) : forward_wide(layer);
        if (layer.fused) layer.fused_relu->kernel->forward(*layer.fused_relu);
    }

    // The gradient of EXPECT comes from the values; a gate's sign lies in the top.
    bool looks_back(const Layer& layer, Role role, size_t i) const override {
        return (pool_.looks_back() && i == 0) || (layer.gate && role == Role::top);
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        if (layer.gated)
            map(layer.tops[0]->diff, layer.tops[0]->data, passed_, true,
                [](float dy, float y) { return dy * (y > 0 ? 1.0F : 0.0F); });
        const Tensor& diff = layer.gated ? passed_ : layer.tops[0]->diff;
        if (!primitive_) return backward_plain(layer, diff.read());
        Arguments arguments = {{DNNL_ARG_DIFF_DST, diff.read(out_)},
                               {DNNL_ARG_DIFF_SRC, layer.bottoms[0]->diff.write(desc_)}};
        if (workspace_) arguments.add(DNNL_ARG_WORKSPACE, workspace_);
        run(backward_, arguments);
    }

   private:
    // In bfloat16 oneDNN 3.2 loses which of 256 values or more was the largest: the gradient goes
    // elsewhere.  It adds up the gradients of windows that overlap in bfloat16, too
    // (docs/decisions/0017).
    bool needs_float32(const Layer& layer) const {
        const bool loses_pick = algorithm_ == dnnl::algorithm::pooling_max &&
                                pool_.rows().kernel * pool_.columns().kernel > 255;
        return layer.backward &&
               (loses_pick || windows_over(pool_.rows()) * windows_over(pool_.columns()) > 16);
    }

    // One window of all pixels, in the test phase.  For means oneDNN 3.2 has plain loops for most
    // channels in bfloat16 whose number fills no vector; it looks for the largest value one by one.
    bool covers_planes(const Layer& layer) const {
        const auto covers = [](const Span& span) {
            return span.outputs == 1 && span.pad == 0 && span.kernel == span.size;
        };
        const auto method = pool_.method();
        return !layer.has_gradients() && layer.tops.size() == 1 && covers(pool_.rows()) &&
               covers(pool_.columns()) &&
               (method == PlanePool::Method::ave || method == PlanePool::Method::max);
    }

    void largest_of_planes(Layer& layer) const {
        const float* x = layer.bottom();
        float* y = layer.top();
        const int64_t size = pool_.inputs();
        parallel_each(layer.tops[0]->count(), size, [=](int64_t i) {
            const float* plane = x + i * size;
            float largest = plane[0];
#pragma omp simd reduction(max : largest)
            for (int64_t k = 1; k < size; ++k) largest = std::max(largest, plane[k]);
            y[i] = largest;
        });
    }

    // At most so many windows contain a value.
    static int64_t windows_over(const Span& span) {
        return std::min<int64_t>(span.outputs, (span.kernel + span.stride - 1) / span.stride);
    }

    void forward_wide(Layer& layer) {
        if (!primitive_) return forward_plain(layer);
        const Tensor& bottom = layer.bottoms[0]->data;
        const auto found = needs_float32(layer) ? bottom.layout() : bottom.newest();
        if (found != desc_ && !make(layer, found)) make(layer, layer.bottoms[0]->data.plain());
        Arguments arguments = {{DNNL_ARG_SRC, layer.bottoms[0]->data.read(desc_)},
                               {DNNL_ARG_DST, layer.tops[0]->data.write(out_)}};
        if (workspace_) arguments.add(DNNL_ARG_WORKSPACE, workspace_);
        run(forward_, arguments);
    }

    // The maximum of narrow numbers is one of them.
    bool forward_narrow(Layer& layer) {
        if (algorithm_ != dnnl::algorithm::pooling_max || layer.backward) return false;
        const Tensor& bottom = layer.bottoms[0]->data;
        Tensor& top = layer.tops[0]->data;
        if (const auto found = bottom.int8()) {
            if (!may_join(layer, found->desc)) return false;
            const memory from = bottom.read(*found), to = top.write(Int8{joined_, found->step});
            if (joined_.get_data_type() == memory::data_type::s8)
                join<int8_t>(layer, from, to);
            else
                join<uint8_t>(layer, from, to);
            return true;
        }
        const auto found = bottom.newest();
        if (!is_narrow(found) || !may_join(layer, found)) return false;
        join<uint16_t>(layer, bottom.read(found), top.write(joined_));
        return true;
    }

    // Whether channels lie last, in what comes in and then in what goes out.
    bool may_join(const Layer& layer, const memory::desc& found) {
        if (narrow_ == found) return true;
        const auto type = found.get_data_type();
        const auto last = memory::format_tag::nhwc;
        if (found != memory::desc(found.get_dims(), type, last)) return false;
        const Shape& shape = layer.tops[0]->shape();
        narrow_ = found, joined_ = {{shape.begin(), shape.end()}, type, last};
        return true;
    }

    template <class T>
    void join(const Layer& layer, const memory& from, const memory& to) const {
        const bool fuses = layer.fused, clips = fuses && slope_ == 0.0F;
        const NarrowPool<T> pool = {pool_.rows(), pool_.columns(), layer.shape()[1], clips};
        pool.run(static_cast<const T*>(from.get_data_handle()),
                 static_cast<T*>(to.get_data_handle()), layer.shape()[0]);
        if (fuses && !clips) layer.fused_relu->kernel->forward(*layer.fused_relu);
    }

    // Primitives for the layout that the input comes in: the same at every pass.
    bool make(const Layer& layer, const memory::desc& desc) {
        memory::dims kernel, strides, before, after;
        for (const Span& span : {pool_.rows(), pool_.columns()}) {
            kernel.push_back(span.kernel);
            strides.push_back(span.stride);
            before.push_back(span.pad);
            const int64_t reach = (span.outputs - 1) * span.stride + span.kernel;
            after.push_back(std::max<int64_t>(0, reach - span.size - span.pad));
        }
        const Shape& top = layer.tops[0]->shape();
        const memory::dims dims(top.begin(), top.end());
        const auto out = is_plain(desc)
                             ? plain_desc(top)
                             : memory::desc(dims, desc.get_data_type(), memory::format_tag::any);
        const auto kind =
            layer.backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
        const memory::dims dense = {0, 0};
        const pooling_forward::primitive_desc forward(cpu(), kind, algorithm_, desc, out, strides,
                                                      kernel, dense, before, after, attributes(),
                                                      true);
        if (!forward) return false;
        if (layer.backward) {
            const pooling_backward::primitive_desc backward(
                cpu(), algorithm_, desc, forward.dst_desc(), strides, kernel, dense, before, after,
                forward, attributes(), true);
            if (!backward) return false;
            backward_ = pooling_backward(backward);
            const auto notes = forward.workspace_desc();
            if (notes.get_size() == 0)
                workspace_ = {};
            else if (!workspace_ || workspace_.get_desc() != notes)
                workspace_ = zeroed(notes);
        }
        forward_ = pooling_forward(forward);
        out_ = forward.dst_desc();
        desc_ = desc;
        return true;
    }

    template <class F>
    void planes(const Layer& layer, F&& body) const {
        const Span &rows = pool_.rows(), &columns = pool_.columns();
        const int64_t cells =
            std::min(rows.kernel, rows.size) * std::min(columns.kernel, columns.size);
        parallel_each(count(layer.shape(), 0, 2), pool_.outputs() * (cells + 4),
                      [&](int64_t p) { body(p); });
    }

    void forward_plain(Layer& layer) {
        const float* in = layer.bottom();
        float* out = layer.top();
        int32_t* picked = picked_.empty() ? nullptr : picked_.data();
        const auto draw = layer.random.draw();
        planes(layer, [&](int64_t p) {
            const int64_t at = p * pool_.outputs();
            pool_.forward(in + p * pool_.inputs(), out + at, picked ? picked + at : nullptr, draw,
                          at);
        });
        if (layer.tops.size() > 1) std::copy(picked_.begin(), picked_.end(), layer.top(1));
    }

    void backward_plain(Layer& layer, const float* dout) {
        const bool looks = pool_.looks_back();
        const float *in = looks ? layer.bottom() : nullptr,
                    *out = looks ? layer.tops[0]->data.read() : nullptr;
        float* din = layer.bottom_diff();
        planes(layer, [&](int64_t p) {
            const int64_t from = p * pool_.inputs(), at = p * pool_.outputs();
            std::fill(din + from, din + from + pool_.inputs(), 0.0F);
            const int32_t* picked = picked_.empty() ? nullptr : picked_.data() + at;
            pool_.backward(looks ? in + from : in, looks ? out + at : out, picked, dout + at,
                           din + from);
        });
    }

    PlanePool pool_;
    // Of the fused ReLU.
    float slope_ = 0;
    dnnl::algorithm algorithm_ = dnnl::algorithm::undef;
    bool primitive_ = false, clips_ = false;
    // The part of the gradient that passes the ReLU before this layer.
    Tensor passed_;
    memory::desc desc_, out_, narrow_, joined_;
    memory workspace_;
    pooling_forward forward_;
    pooling_backward backward_;
    std::vector<int32_t> picked_;
};

// Poolings of 1, 4, 16 … bins, laid one after the other (Caffe: spp_layer.cpp).
class SPP final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const int64_t levels = layer.options.integer("levels");
        channels_ = layer.shape()[1];
        levels_.clear();
        bins_ = 0;
        bool picks = false;
        for (int64_t i = 0; i < levels; ++i) {
            const std::string prefix = "levels." + std::to_string(i) + ".";
            const auto output = layer.options.integers(prefix + "output");
            levels_.push_back({PlanePool(layer, prefix, output[0], output[1]), bins_ * channels_});
            bins_ += levels_.back().pool.outputs();
            picks = levels_.back().pool.picks();
        }
        picked_.assign(picks && layer.backward ? static_cast<size_t>(layer.tops[0]->count()) : 0,
                       -1);
    }

    void forward(Layer& layer) override {
        const float* in = layer.bottom();
        float* out = layer.top();
        const auto draw = layer.random.draw();
        planes(layer, [&](const PlanePool& pool, int64_t from, int64_t at) {
            pool.forward(in + from, out + at, picked_.empty() ? nullptr : picked_.data() + at, draw,
                         at);
        });
    }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float *in = layer.bottom(), *dout = layer.top_diff(),
                    *out = layer.tops[0]->data.read();
        float* din = layer.bottom_diff();
        std::fill(din, din + layer.bottoms[0]->count(), 0.0F);
        planes(layer, [&](const PlanePool& pool, int64_t from, int64_t at) {
            pool.backward(in + from, out + at, picked_.empty() ? nullptr : picked_.data() + at,
                          dout + at, din + from);
        });
    }

   private:
    struct Level {
        PlanePool pool;
        int64_t offset;  // of the level in an image's row
    };

    // body(pool, first input, first output) for each plane and level; a plane's levels in order.
    template <class F>
    void planes(const Layer& layer, F&& body) const {
        const int64_t area = count(layer.shape(), 2, 4);
        parallel_each(
            count(layer.shape(), 0, 2), area * static_cast<int64_t>(levels_.size()),
            [&](int64_t p) {
                const int64_t row = p / channels_ * channels_ * bins_, channel = p % channels_;
                for (const Level& level : levels_)
                    body(level.pool, p * area, row + level.offset + channel * level.pool.outputs());
            });
    }

    std::vector<Level> levels_;
    int64_t channels_ = 0, bins_ = 0;
    std::vector<int32_t> picked_;
};
}  // namespace

REGISTER_LAYER(Pooling, Pooling);
REGISTER_LAYER(SPP, SPP);

}  // namespace sn
