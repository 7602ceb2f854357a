// Dropout of values and of channels.
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

extern "C" {
#include "../ndarray/kernel.h"
}

namespace sn {

namespace {
// Drops a share of the values in TRAIN and scales the rest (Caffe: dropout_layer.cpp).
template <class T>
SN_KERNEL void drop_values(const T* x, T* y, int64_t begin, int64_t end, Random::Draw draw,
                           uint64_t bound, float scale) {
    SN_EACH(k, end - begin) {
        const int64_t i = begin + k;
        const bool kept = draw.bits(static_cast<uint64_t>(i)) >> 24 >= bound;
        y[i] = x[i] * (kept ? scale : 0.0F);  // Caffe: NaN and infinity give NaN
    }
}

class Dropout final : public LinearKernel {
   public:
    void reshape(Layer& layer) override {
        train_ = layer.options.flag("train");
        scale_ = layer.options.real32("scale");
        bound_ = static_cast<uint64_t>(layer.options.real("ratio") * 0x1p40);
    }

    void forward(Layer& layer) override {
        const Tensor& x = layer.bottoms[0]->data;
        if (train_) {
            draw_ = layer.random.draw();
            drop(x, layer.tops[0]->data);
        } else if (!layer.in_place() || scale_ != 1.0F) {
            map(x, layer.tops[0]->data, true, [s = scale_](float v) { return v * s; });
        }
    }

    bool leaves_signs(const Layer&) const override { return true; }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const Tensor& dy = layer.tops[0]->diff;
        if (train_)
            drop(dy, layer.bottoms[0]->diff);
        else if (!layer.in_place() || scale_ != 1.0F)
            map(dy, layer.bottoms[0]->diff, true, [s = scale_](float v) { return v * s; });
    }

   private:
    // The mask is not stored: the draw and the place of a value tell whether it is kept.  Places
    // are those of plain rows, so that every engine and processor drops the same values.
    void drop(const Tensor& from, Tensor& to) const {
        if (from.count() == 0) return;
        const auto desc = retyped(from.plain(), from.newest().get_data_type());
        const auto source = from.read(desc), target = to.write(desc);
        typed(desc, [&](auto type) {
            using T = decltype(type);
            const T* x = values_of<T>(source);
            T* y = values_of<T>(target);
            parallel(values(desc), 4, [=](int64_t begin, int64_t end) {
                drop_values(x, y, begin, end, draw_, bound_, scale_);
            });
        });
    }

    bool train_ = false;
    float scale_ = 1;
    uint64_t bound_ = 0;
    Random::Draw draw_{0};
};

// Drops whole channels of an image in TRAIN and scales the rest (ENet: spatial_dropout_layer.cpp).
class SpatialDropout final : public LinearKernel {
   public:
    void reshape(Layer& layer) override {
        train_ = layer.options.flag("train");
        scale_ = layer.options.real32("scale");
        bound_ = static_cast<uint64_t>(layer.options.real("ratio") * 0x1p40);
        const Shape& in = layer.shape();
        planes_ = in[0] * in[1];
        area_ = planes_ == 0 ? 0 : layer.bottoms[0]->count() / planes_;
    }

    void forward(Layer& layer) override {
        if (train_) draw_ = layer.random.draw();
        if (is_nothing(layer)) return;
        const float* from = layer.bottom();
        pass(from, layer.top());
    }

    bool leaves_signs(const Layer&) const override { return true; }

    void backward(Layer& layer) override {
        if (!layer.propagate[0] || is_nothing(layer)) return;
        const float* from = layer.top_diff();
        pass(from, layer.bottom_diff());
    }

   private:
    bool is_nothing(const Layer& layer) const {
        return !train_ && scale_ == 1.0F && layer.in_place();
    }

    // What is kept follows from the draw and the channel's number: no mask is stored.
    void pass(const float* from, float* to) const {
        const auto draw = draw_;
        const auto bound = bound_;
        const bool drops = train_;
        const float scale = scale_;
        const int64_t area = area_;
        parallel_each(planes_, area, [=](int64_t p) {
            const bool kept = !drops || draw.bits(static_cast<uint64_t>(p)) >> 24 >= bound;
            const float by = kept ? scale : 0.0F;
            for (int64_t i = p * area; i < (p + 1) * area; ++i) to[i] = from[i] * by;
        });
    }

    bool train_ = false;
    float scale_ = 1;
    uint64_t bound_ = 0;
    int64_t planes_ = 0, area_ = 0;
    Random::Draw draw_{0};
};
}  // namespace

REGISTER_LAYER(Dropout, Dropout);
REGISTER_LAYER(SpatialDropout, SpatialDropout);

}  // namespace sn
