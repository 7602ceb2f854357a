// YOLO's layers.
#include <algorithm>
#include <cmath>
#include <utility>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"
#include "../layers/no_gradient.hpp"

namespace sn {

namespace {
// Blocks of pixels to channels and back (YOLOv2: reorg_layer.cpp, with its order of channels).
class Reorg final : public LinearKernel {
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
        parallel_each(images_ * channels_, high_ * wide_ * 4, [&](int64_t p) {
            const int64_t n = p / channels_, c = p % channels_;
            const int64_t offset = c / out, plane = n * out + c % out;
            for (int64_t h = 0; h < high_; ++h) {
                const int64_t row = (plane * high_ + h) * stride_ + offset / stride_;
                for (int64_t w = 0; w < wide_; ++w)
                    body((p * high_ + h) * wide_ + w,
                         (row * wide_ + w) * stride_ + offset % stride_);
            }
        });
    }

    bool reverse_ = false;
    int64_t stride_ = 1, images_ = 0, channels_ = 0, high_ = 0, wide_ = 0;
};

// YOLOv3's boxes: decoded, thresholded and suppressed (MobileNet-YOLO:
// yolov3_detection_output_layer.cpp).  Suppression does not ask for classes, so of one box only its
// likeliest class can stay.
struct Found {
    float score, label, x, y, wide, high;
};

float sigmoid(float x) {
    return 1.0F / (1.0F + std::exp(-x));
}

float overlap(const Found& a, const Found& b) {
    const float wide =
        std::min(a.x + a.wide / 2, b.x + b.wide / 2) - std::max(a.x - a.wide / 2, b.x - b.wide / 2);
    const float high =
        std::min(a.y + a.high / 2, b.y + b.high / 2) - std::max(a.y - a.high / 2, b.y - b.high / 2);
    if (!(wide > 0 && high > 0)) return 0;
    const float common = wide * high, both = a.wide * a.high + b.wide * b.high - common;
    return both > 0 ? common / both : 0;
}

class Yolov3DetectionOutput final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        classes_ = options.integer("num_classes");
        boxes_ = options.integer("num_box");
        biases_ = options.reals("biases");
        mask_ = options.integers("mask");
        scales_ = options.integers("anchors_scale");
        least_ = options.real32("confidence_threshold");
        threshold_ = options.real32("nms_threshold");
        images_ = layer.shape()[0];
    }

    void forward(Layer& layer) override {
        rows_.clear();
        for (int64_t image = 0; image < images_; ++image) {
            found_.clear();
            for (size_t map = 0; map < layer.bottoms.size(); ++map) look(layer, map, image);
            std::stable_sort(found_.begin(), found_.end(),
                             [](const Found& a, const Found& b) { return a.score > b.score; });
            suppress(static_cast<float>(image));
        }
        const bool none = rows_.empty();
        const int64_t rows = none ? images_ : static_cast<int64_t>(rows_.size()) / 7;
        layer.tops[0]->reshape({1, 1, rows, 7});
        float* top = layer.top();
        if (!none) {
            std::copy(rows_.begin(), rows_.end(), top);
            return;
        }
        std::fill_n(top, rows * 7, -1.0F);
        for (int64_t image = 0; image < images_; ++image)
            top[image * 7] = static_cast<float>(image);
    }

    void backward(Layer& layer) override { refuse_backward(layer); }

   private:
    // The boxes of one map whose best class is likely enough.
    void look(const Layer& layer, size_t map, int64_t image) {
        const Shape& shape = layer.bottoms[map]->shape();
        const int64_t high = shape[2], wide = shape[3], area = high * wide, length = 5 + classes_;
        const float* x = layer.bottom(map) + image * shape[1] * area;
        const auto scale = static_cast<double>(scales_[map]);
        for (int64_t b = 0; b < boxes_; ++b, x += length * area) {
            const auto n = static_cast<size_t>(
                mask_[map * static_cast<size_t>(boxes_) + static_cast<size_t>(b)]);
            const auto anchor_wide =
                static_cast<float>(biases_[2 * n] / (static_cast<double>(wide) * scale));
            const auto anchor_high =
                static_cast<float>(biases_[2 * n + 1] / (static_cast<double>(high) * scale));
            for (int64_t i = 0; i < area; ++i) {
                int64_t label = 0;
                for (int64_t c = 1; c < classes_; ++c)
                    if (x[(5 + c) * area + i] > x[(5 + label) * area + i]) label = c;
                const float score = sigmoid(x[4 * area + i]) * sigmoid(x[(5 + label) * area + i]);
                if (!(score > least_)) continue;
                const auto column = static_cast<float>(i % wide),
                           row = static_cast<float>(i / wide);
                found_.push_back({score, static_cast<float>(label + 1),
                                  (column + sigmoid(x[i])) / static_cast<float>(wide),
                                  (row + sigmoid(x[area + i])) / static_cast<float>(high),
                                  grown(x[2 * area + i]) * anchor_wide,
                                  grown(x[3 * area + i]) * anchor_high});
            }
        }
    }

    // Beyond this factor no image could hold a box.
    static float grown(float x) {
        constexpr float most = 16.54F;
        return std::exp(std::min(x, most));
    }

    void suppress(float image) {
        gone_.assign(found_.size(), 0);
        for (size_t i = 0; i < found_.size(); ++i) {
            if (gone_[i]) continue;
            const Found one = found_[i];
            for (const float value :
                 {image, one.label, one.score, one.x - one.wide / 2, one.y - one.high / 2,
                  one.x + one.wide / 2, one.y + one.high / 2})
                rows_.push_back(value);
            const auto first = static_cast<int64_t>(i) + 1;
            const float threshold = threshold_;
            parallel(static_cast<int64_t>(found_.size()) - first, 16,
                     [&, first, threshold](int64_t begin, int64_t end) {
                         for (auto j = static_cast<size_t>(first + begin);
                              j < static_cast<size_t>(first + end); ++j)
                             if (!gone_[j] && overlap(one, found_[j]) >= threshold) gone_[j] = 1;
                     });
        }
    }

    int64_t classes_ = 1, boxes_ = 1, images_ = 0;
    std::vector<double> biases_;
    std::vector<int64_t> mask_, scales_;
    float least_ = 0, threshold_ = 1;
    std::vector<Found> found_;
    std::vector<uint8_t> gone_;
    std::vector<float> rows_;
};
}  // namespace

REGISTER_LAYER(Reorg, Reorg);
REGISTER_LAYER(Yolov3DetectionOutput, Yolov3DetectionOutput);

}  // namespace sn
