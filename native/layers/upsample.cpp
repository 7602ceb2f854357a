// Values put back where max pooling took them from (SegNet's upsample_layer.cpp), or pixels
// repeated (YOLO's).
#include "../engine/elementwise.hpp"
#include "../engine/layer.hpp"
#include "formats.hpp"
#include "indices.hpp"
#include "rows.hpp"

namespace sn {

namespace {
class Upsample final : public LinearKernel {
   public:
    void reshape(Layer& layer) override {
        unpool_ = layer.options.text("method") == "unpool";
        scale_ = unpool_ ? 0 : layer.options.integer("scale");
        const Shape &in = layer.shape(), &out = layer.tops[0]->shape();
        planes_ = in[0] * in[1];
        high_ = in[2], wide_ = in[3];
        const auto values = unpool_ ? static_cast<size_t>(layer.bottoms[0]->count()) : 0;
        if (area_ != out[2] * out[3] || values != places_.size()) places_.assign(values, 0);
        area_ = out[2] * out[3];
    }

    void forward(Layer& layer) override {
        if (unpool_)
            unpool(layer);
        else
            repeat(layer);
    }

    void backward(Layer& layer) override {
        layer.clear_bottom_diffs(1);
        if (!layer.propagate[0]) return;
        if (unpool_)
            gather(layer);
        else
            add_up(layer);
    }

   private:
    // Of two values that go to one place the later one stays, as in Caffe.
    void unpool(Layer& layer) {
        find(layer);
        const float* x = layer.bottom();
        float* y = layer.top();
        const int64_t plane = high_ * wide_, area = area_;
        parallel(planes_, area, [=](int64_t begin, int64_t end) {
            std::fill(y + begin * area, y + end * area, 0.0F);
            for (int64_t i = begin * plane; i < end * plane; ++i)
                y[i / plane * area + places_[static_cast<size_t>(i)]] = x[i];
        });
    }

    void find(const Layer& layer) {
        const float* mask = layer.bottom(1);
        for (size_t i = 0; i < places_.size(); ++i) {
            const int64_t place = index_of(mask[i], area_);
            places_[i] = static_cast<int32_t>(std::max<int64_t>(place, 0));
            if (place < 0)
                layer.refuse("the mask's " + number_text(mask[i]) +
                             " is out of range: an output image has " + std::to_string(area_) +
                             " values");
        }
    }

    void gather(Layer& layer) const {
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        const int64_t plane = high_ * wide_, area = area_;
        parallel_each(planes_ * plane, [=](int64_t i) {
            dx[i] = dy[i / plane * area + places_[static_cast<size_t>(i)]];
        });
    }

    void repeat(Layer& layer) const {
        const Planes planes(layer.bottoms[0]->data, layer.tops[0]->shape());
        const auto from = layer.bottoms[0]->data.read(planes.source);
        const auto to = layer.tops[0]->data.write(planes.target);
        const auto* x = floats(from);
        auto* y = floats(to);
        const int64_t inner = planes.inner, wide = wide_, scale = scale_,
                      row = wide * scale * inner;
        parallel_each(planes.outer * high_, row * scale, [=](int64_t r) {
            float* first = y + r * scale * row;
            for (int64_t k = 0; k < wide * scale; ++k)
                std::copy_n(x + (r * wide + k / scale) * inner, inner, first + k * inner);
            for (int64_t s = 1; s < scale; ++s) std::copy_n(first, row, first + s * row);
        });
    }

    void add_up(Layer& layer) const {
        const Planes planes(layer.tops[0]->diff, layer.shape());
        const auto from = layer.tops[0]->diff.read(planes.source);
        const auto to = layer.bottoms[0]->diff.write(planes.target);
        const auto* dy = floats(from);
        auto* dx = floats(to);
        const int64_t inner = planes.inner, wide = wide_, scale = scale_,
                      row = wide * scale * inner;
        parallel_each(planes.outer * high_, row * scale, [=](int64_t r) {
            float* sums = dx + r * wide * inner;
            std::fill_n(sums, wide * inner, 0.0F);
            for (int64_t s = 0; s < scale; ++s)
                for (int64_t k = 0; k < wide * scale; ++k) {
                    const float* some = dy + (r * scale + s) * row + k * inner;
                    float* sum = sums + k / scale * inner;
                    for (int64_t i = 0; i < inner; ++i) sum[i] += some[i];
                }
        });
    }

    bool unpool_ = false;
    int64_t scale_ = 1, planes_ = 0, high_ = 0, wide_ = 0, area_ = 0;
    std::vector<int32_t> places_;  // unpool: where each value goes in its output image
};
}  // namespace

REGISTER_LAYER(Upsample, Upsample);

}  // namespace sn
