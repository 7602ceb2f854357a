// Blocks of pixels to channels and back (YOLOv2: reorg_layer.cpp, with its order of channels).
#include <utility>

#include "../../engine/layer.hpp"
#include "../../engine/parallel.hpp"

namespace sn {

namespace {
class Reorg final : public Kernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        reverse_ = layer.options.flag("reverse");
        stride_ = layer.options.integer("stride");
        // The loops walk over the input's sizes, whichever way values go: this is YOLO's order.
        const Shape& in = layer.shape();
        images_ = in[0], channels_ = in[1], high_ = in[2], wide_ = in[3];
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        const bool reverse = reverse_;
        pairs([=](int64_t near, int64_t far) { reverse ? y[far] = x[near] : y[near] = x[far]; });
    }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        const bool reverse = reverse_;
        pairs(
            [=](int64_t near, int64_t far) { reverse ? dx[near] = dy[far] : dx[far] = dy[near]; });
    }

   private:
    // body(place among the input's sizes, place among those that a stride of pixels makes)
    template <class F>
    void pairs(F&& body) const {
        const int64_t out = channels_ / (stride_ * stride_);
        parallel(
            images_ * channels_,
            [&](int64_t begin, int64_t end) {
                for (int64_t p = begin; p < end; ++p) {
                    const int64_t n = p / channels_, c = p % channels_;
                    const int64_t offset = c / out, plane = n * out + c % out;
                    for (int64_t h = 0; h < high_; ++h) {
                        const int64_t row = (plane * high_ + h) * stride_ + offset / stride_;
                        for (int64_t w = 0; w < wide_; ++w)
                            body((p * high_ + h) * wide_ + w,
                                 (row * wide_ + w) * stride_ + offset % stride_);
                    }
                }
            },
            high_ * wide_ * 4);
    }

    bool reverse_ = false;
    int64_t stride_ = 1, images_ = 0, channels_ = 0, high_ = 0, wide_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_reorg() {
    return make<Reorg>();
}

}  // namespace sn
