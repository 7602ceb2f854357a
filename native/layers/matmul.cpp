// Matrix products of two blobs, over axes before the last two that are equal or 1.
#include <algorithm>

#include "../engine/instructions.hpp"
#include "../engine/layer.hpp"
#include "../engine/matmul/attention_product.hpp"
#include "../engine/matmul/gemm.hpp"
#include "../engine/net.hpp"
#include "../engine/plan/attention_part.hpp"
#include "../engine/primitive.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class MatMul final : public BottomKernel, public IsAttentionPart<AttentionPart::product> {
   public:
    bool only_reads() const override { return true; }
    // Where it is the last product of an attention.
    bool fuses() const override { return true; }
    std::string method(const Layer& layer, Part part) const override {
        return layer.attention && part == Part::forward ? "with softmax, by blocks of rows" : "";
    }

    bool rounds(const Layer& layer, const Blob& bottom) const override {
        if (!layer.attention) return false;
        const Attention& found = *layer.attention;
        const auto* loops = attention_loops(numbers(layer));
        const bool is_factor = found.queries.blob == &bottom || found.keys.blob == &bottom ||
                               found.values.blob == &bottom;
        const bool is_term =
            found.instead.blob == &bottom ||
            std::any_of(found.terms.begin(), found.terms.end(),
                        [&](const Attention::Operand& term) { return term.blob == &bottom; });
        return loops && loops->takes_rounded() && is_factor && !is_term;
    }

    void reshape(Layer& layer) override {
        const Shape &a = layer.shape(0), &b = layer.shape(1), &y = layer.tops[0]->shape();
        turned_a_ = layer.options.flag("transpose_a");
        turned_b_ = layer.options.flag("transpose_b");
        const size_t axes = y.size();
        m_ = y[axes - 2], n_ = y[axes - 1];
        k_ = turned_a_ ? a[axes - 2] : a[axes - 1];
        batches_ = count(y, 0, axes - 2);
        place_a_ = places(a, y), place_b_ = places(b, y);
        product_ = {};
        if (layer.attention) attention_.reshape(*layer.attention, numbers(layer));
        if (layer.tops[0]->count() == 0 || k_ == 0) return;
        desc_a_ = described(a, turned_a_), desc_b_ = described(b, turned_b_);
        desc_y_ = plain_desc(y);
        if (axes > 6) return;
        product_ = dnnl::matmul(
            dnnl::matmul::primitive_desc(cpu(), desc_a_, desc_b_, desc_y_, attributes()));
    }

    void forward(Layer& layer) override {
        if (layer.fused) return attention_.run(*layer.attention, *layer.fused_last->tops[0]);
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        float* y = layer.top();
        if (product_) {
            run(product_, {{DNNL_ARG_SRC, {desc_a_, cpu(), const_cast<float*>(a)}},
                           {DNNL_ARG_WEIGHTS, {desc_b_, cpu(), const_cast<float*>(b)}},
                           {DNNL_ARG_DST, {desc_y_, cpu(), y}}});
            return;
        }
        if (k_ == 0) return clear(y, layer.tops[0]->count());
        for (int64_t i = 0; i < batches_; ++i)
            gemm(turned_a_, turned_b_, m_, n_, k_, 1, a + at(place_a_, i) * m_ * k_,
                 b + at(place_b_, i) * k_ * n_, 0, y + i * m_ * n_);
    }

    void backward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1), *dy = layer.top_diff();
        for (size_t side = 0; side < 2; ++side) {
            if (!layer.propagate[side]) continue;
            float* d = layer.bottom_diff(side);
            clear(d, layer.bottoms[side]->count());
            if (layer.bottoms[side]->count() == 0) continue;
            for (int64_t i = 0; i < batches_; ++i) {
                const float* g = dy + i * m_ * n_;
                const int64_t ia = at(place_a_, i) * m_ * k_, ib = at(place_b_, i) * k_ * n_;
                if (side == 0)
                    add_to_a(g, b + ib, d + ia);
                else
                    add_to_b(g, a + ia, d + ib);
            }
        }
    }

   private:
    // With few keys, rounding to eight bits takes longer than what products of bytes save.
    static AttentionNumbers numbers(const Layer& layer) {
        constexpr int64_t few = 128;
        if (layer.int8 && (layer.attention->columns > few || !has_avx512_bf16()))
            return AttentionNumbers::int8;
        const bool rounds = layer.int8 || layer.net->narrow();
        return rounds ? AttentionNumbers::bf16 : AttentionNumbers::float32;
    }

    // A matrix that is stored transposed is read with its steps exchanged.
    static dnnl::memory::desc described(const Shape& shape, bool turned) {
        if (!turned) return plain_desc(shape);
        Shape steps(shape.size(), 1), seen = shape;
        for (size_t i = shape.size() - 1; i-- > 0;) steps[i] = steps[i + 1] * shape[i + 1];
        std::swap(steps[shape.size() - 1], steps[shape.size() - 2]);
        std::swap(seen[shape.size() - 1], seen[shape.size() - 2]);
        return {seen, dnnl::memory::data_type::f32, steps};
    }

    // Which matrix of a blob each one of the result is made from; empty: the one of its number.
    static std::vector<int64_t> places(const Shape& from, const Shape& to) {
        const size_t axes = to.size() - 2;
        if (std::equal(from.begin(), from.begin() + static_cast<int64_t>(axes), to.begin()))
            return {};
        std::vector<int64_t> found(static_cast<size_t>(count(to, 0, axes)));
        for (size_t i = 0; i < found.size(); ++i) {
            auto rest = static_cast<int64_t>(i);
            int64_t place = 0, step = 1;
            for (size_t axis = axes; axis-- > 0;) {
                if (from[axis] != 1) place += rest % to[axis] * step;
                rest /= to[axis];
                step *= from[axis];
            }
            found[i] = place;
        }
        return found;
    }

    static int64_t at(const std::vector<int64_t>& places, int64_t i) {
        return places.empty() ? i : places[static_cast<size_t>(i)];
    }

    void add_to_a(const float* dy, const float* b, float* da) const {
        if (turned_a_)
            gemm(turned_b_, true, k_, m_, n_, 1, b, dy, 1, da);
        else
            gemm(false, !turned_b_, m_, k_, n_, 1, dy, b, 1, da);
    }

    void add_to_b(const float* dy, const float* a, float* db) const {
        if (turned_b_)
            gemm(true, turned_a_, n_, k_, m_, 1, dy, a, 1, db);
        else
            gemm(!turned_a_, false, k_, n_, m_, 1, a, dy, 1, db);
    }

    bool turned_a_ = false, turned_b_ = false;
    int64_t m_ = 0, n_ = 0, k_ = 0, batches_ = 0;
    std::vector<int64_t> place_a_, place_b_;
    dnnl::memory::desc desc_a_, desc_b_, desc_y_;
    dnnl::matmul product_;
    AttentionProduct attention_;
};
}  // namespace

REGISTER_LAYER(MatMul, MatMul);

}  // namespace sn
