// Drops a share of the values in TRAIN and scales the rest (Caffe: dropout_layer.cpp).
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"

extern "C" {
#include "../ndarray/kernel.h"
}

namespace sn {

namespace {
template <class T>
SN_KERNEL void drop_values(const T* x, T* y, int64_t begin, int64_t end, Random::Draw draw,
                           uint64_t bound, float scale) {
    SN_EACH(k, end - begin) {
        const int64_t i = begin + k;
        const bool kept = draw.bits(static_cast<uint64_t>(i)) >> 24 >= bound;
        y[i] = x[i] * (kept ? scale : 0.0F);  // Caffe: NaN and infinity give NaN
    }
}

class Dropout final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        train_ = layer.options.flag("train");
        scale_ = static_cast<float>(layer.options.real("scale"));
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

    bool looks_back(const Layer&, Role, size_t) const override { return false; }
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
            parallel(
                values(desc),
                [=](int64_t begin, int64_t end) {
                    drop_values(x, y, begin, end, draw_, bound_, scale_);
                },
                4);
        });
    }

    bool train_ = false;
    float scale_ = 1;
    uint64_t bound_ = 0;
    Random::Draw draw_{0};
};
}  // namespace

std::unique_ptr<Kernel> make_dropout() {
    return make<Dropout>();
}

}  // namespace sn
