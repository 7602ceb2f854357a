// A factor and a shift for each channel, or for more axes.
#include <numeric>

#include "../engine/instructions.hpp"
#include "../engine/int8.hpp"
#include "../engine/lanes.hpp"
#include "../engine/net.hpp"
#include "../engine/plan/attention_part.hpp"
#include "channel_factors.hpp"
#include "operand.hpp"

namespace sn {

namespace {
// y = x * factor + bias, broadcast over the other axes (Caffe: scale_layer.cpp).
// The numbers of each channel, again and again until whole vectors are full.
class Repeated {
   public:
    static constexpr int64_t strip = 32, most = 4096;

    static bool suits(const Broadcast& view) {
        return is_narrow(view.desc) && has_avx512_bf16() && view.lanes > 1 && view.inner > 1 &&
               rows(view.lanes) * view.lanes <= most;
    }
    static int64_t rows(int64_t lanes) { return strip / std::gcd(lanes, strip); }

    explicit Repeated(int64_t lanes)
        : lanes_(lanes),
          factors_(static_cast<size_t>(rows(lanes) * lanes)),
          shifts_(factors_.size()) {}

    void take(const float* factors, const float* shifts) {
        with_shifts_ = shifts != nullptr;
        repeat(factors, factors_);
        if (with_shifts_) repeat(shifts, shifts_);
    }
    ChannelFactors all() const {
        return {factors_.data(), with_shifts_ ? shifts_.data() : nullptr,
                static_cast<int64_t>(factors_.size())};
    }

   private:
    void repeat(const float* values, std::vector<float>& to) const {
        for (auto at = to.begin(); at != to.end(); at += lanes_) std::copy_n(values, lanes_, at);
    }

    int64_t lanes_;
    bool with_shifts_ = false;
    std::vector<float> factors_, shifts_;
};

class Scale final : public Kernel {
   public:
    bool is_affine(const Layer& layer) const override { return is_by_channel(layer); }
    bool scales_channels(const Layer& layer) const override { return is_by_channel(layer); }
    void fold_into(Affine& before, const Layer& layer) const override {
        before.then(of_param(layer, 0, 1), of_param(layer, 1, 0));
    }

    void reshape(Layer& layer) override {
        learned_ = layer.bottoms.size() == 1;
        bias_ = layer.options.flag("bias_term");
    }

    void forward(Layer& layer) override {
        Tensor& y = layer.tops[0]->data;
        if (const auto bytes = layer.bottoms[0]->data.int8(); bytes && run_bytes(layer, *bytes))
            return;
        Tensor& x = takes_over(layer) ? y : layer.bottoms[0]->data;
        const Broadcast view = meet(layer, x);
        const float* factors = factor_.padded(factor(layer), view);
        const float* shifts = bias_ ? shift_.padded(layer.param(learned_ ? 1 : 0), view) : nullptr;
        if (Repeated::suits(view)) return run(view, x, factors, shifts, y);
        if (bias_)
            map(layer, view, x, [=](float v, int64_t c) { return v * factors[c] + shifts[c]; });
        else
            map(layer, view, x, [=](float v, int64_t c) { return v * factors[c]; });
    }

    bool looks_back(const Layer& layer, Role role, size_t i) const override {
        if (role == Role::top) return false;
        return i == 1 || (learned_ ? layer.learns[0] : layer.propagate[1]);
    }

    void backward(Layer& layer) override {
        Tensor& dy = layer.tops[0]->diff;
        const Broadcast view = meet(layer, dy);
        const size_t shift = learned_ ? 1 : 0;
        if (bias_ && layer.learns[shift])
            give(sums_.add_up(view, dy), view, layer.param_diff(shift), true);
        if (learned_ ? layer.learns[0] : layer.propagate[1]) {
            give(sums_.add_up(view, dy, layer.bottoms[0]->data), view,
                 learned_ ? layer.param_diff(0) : layer.bottom_diff(1), learned_);
        }
        if (!layer.propagate[0]) return;
        const float* factors = factor_.padded(factor(layer), view);
        sn::map(view, dy, layer.bottoms[0]->diff,
                [=](float v, int64_t c) { return v * factors[c]; });
    }

   private:
    template <class F>
    static void map(const Layer& layer, const Broadcast& view, const Tensor& x, F f) {
        Blob& top = *layer.tops[0];
        if (top.rounded && is_plain(view.desc)) {
            const float* from = x.read();
            sn::map(view, from, reinterpret_cast<BFloat16*>(top.data.write_rounded()), f);
        } else {
            sn::map(view, x, top.data, f);
        }
    }

    // In bfloat16, channels last: blocks of rows that are the same for all pixels of a record.
    static void run(const Broadcast& view, const Tensor& x, const float* factors,
                    const float* shifts, Tensor& y) {
        const auto source = x.read(view.desc), target = y.write(view.desc);
        const auto* from = values_of<uint16_t>(source);
        auto* to = values_of<uint16_t>(target);
        const int64_t together = Repeated::rows(view.lanes);
        const int64_t parts = (view.inner + together - 1) / together;
        parallel(
            view.outer * view.blocks * parts, together * view.lanes,
            [=](int64_t begin, int64_t end) {
                Repeated by(view.lanes);
                while (begin < end) {
                    const int64_t block = begin / parts, first = begin % parts * together;
                    const int64_t stop = std::min(end, (block + 1) * parts);
                    const int64_t last = std::min(view.inner, (stop - block * parts) * together);
                    const int64_t operand = block % view.blocks * view.lanes;
                    by.take(factors + operand, shifts ? shifts + operand : nullptr);
                    const int64_t at = (block * view.inner + first) * view.lanes;
                    multiply_channels(by.all(), from + at, (last - first) * view.lanes, to + at);
                    begin = stop;
                }
            });
    }

    // From eight bits to eight bits, channels last; false where values lie otherwise.
    bool run_bytes(const Layer& layer, const Int8& from) {
        const Tensor& x = layer.bottoms[0]->data;
        Blob& top = *layer.tops[0];
        const Broadcast view = meet(layer, x);
        if (layer.in_place() || bias_ || !may_store_int8(layer) || view.lanes < lanes ||
            retyped(from.desc, dnnl::memory::data_type::f32) != view.desc)
            return false;
        const Int8 to = {retyped(from.desc, int8_type(top.is_signed)), top.step};
        const auto source = x.read(from), target = top.data.write(to);
        const float* factors = factor_.padded(factor(layer), view);
        typed_bytes(from.desc, [&](auto read) {
            typed_bytes(to.desc, [&](auto made) {
                multiply_bytes(view, values_of<decltype(read)>(source), factors,
                               from.step / to.step, values_of<decltype(made)>(target));
            });
        });
        return true;
    }

    template <class From, class To>
    static void multiply_bytes(const Broadcast& view, const From* from, const float* factors,
                               float step, To* to) {
        const int64_t width = view.lanes, inner = view.inner, blocks = view.blocks;
        parallel_each(view.outer * blocks * inner, width,
                      [=](int64_t row) __attribute__((always_inline)) {
                          const float* by = factors + row / inner % blocks * width;
                          const From* x = from + row * width;
                          To* y = to + row * width;
                          // The last vector begins where all of its channels are.
                          for (int64_t l = 0; l < width; l += lanes) {
                              const int64_t at = std::min(l, width - lanes);
                              put_rounded(lanes_of(x + at) * (lanes_of(by + at) * step), y + at);
                          }
                      });
    }

    // Whether the top has taken the memory of a bottom that nobody reads again: writing what has
    // just been read is faster than writing elsewhere.
    static bool takes_over(const Layer& layer) {
        const Blob& from = *layer.bottoms[0];
        // Lines that another core has read last are written faster elsewhere.
        constexpr int64_t of_one_thread = 1 << 16;
        if (layer.has_gradients() || layer.in_place() ||
            (threads() > 1 && from.count() >= of_one_thread) ||
            !layer.net->is_last_reader(layer, from) ||
            (layer.bottoms.size() > 1 && layer.bottoms[1]->data.shares(from.data)))
            return false;
        layer.tops[0]->data.copy(from.data);
        from.data.storage().give_back();
        return true;
    }

    const float* factor(const Layer& layer) const {
        return learned_ ? layer.param(0) : layer.bottom(1);
    }

    bool learned_ = true, bias_ = false;
    Operand factor_, shift_;
    OperandSums sums_;
};

// y = x + bias, broadcast over the other axes (Caffe: bias_layer.cpp).
class Bias final : public LinearKernel, public IsAttentionPart<AttentionPart::bias> {
   public:
    bool is_affine(const Layer& layer) const override { return is_by_channel(layer); }
    void fold_into(Affine& before, const Layer& layer) const override {
        before.then([](size_t) { return 1.0; }, of_param(layer, 0, 0));
    }

    void reshape(Layer& layer) override { learned_ = layer.bottoms.size() == 1; }

    void forward(Layer& layer) override {
        Tensor& x = layer.bottoms[0]->data;
        const Broadcast view = meet(layer, x);
        const float* shifts = shift_.padded(learned_ ? layer.param(0) : layer.bottom(1), view);
        map(view, x, layer.tops[0]->data, [=](float v, int64_t c) { return v + shifts[c]; });
    }

    void backward(Layer& layer) override {
        Tensor& dy = layer.tops[0]->diff;
        if (learned_ ? layer.learns[0] : layer.propagate[1]) {
            const Broadcast view = meet(layer, dy);
            give(sums_.add_up(view, dy), view,
                 learned_ ? layer.param_diff(0) : layer.bottom_diff(1), learned_);
        }
        if (layer.propagate[0] && !layer.in_place()) layer.bottoms[0]->diff.copy(dy);
    }

   private:
    bool learned_ = true;
    Operand shift_;
    OperandSums sums_;
};
}  // namespace

REGISTER_LAYER(Scale, Scale);
REGISTER_LAYER(Bias, Bias);

}  // namespace sn
