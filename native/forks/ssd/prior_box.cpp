// Default boxes around every place of a feature map (SSD's Caffe: prior_box_layer.cpp).
#include <algorithm>

#include "../../engine/layer.hpp"
#include "../../engine/parallel.hpp"

namespace sn {

namespace {
class PriorBox final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        rows_ = options.integer("layer_h"), columns_ = options.integer("layer_w");
        height_ = options.real("img_h"), width_ = options.real("img_w");
        step_h_ = options.real32("step_h");
        step_w_ = options.real32("step_w");
        offset_ = options.real32("offset");
        clip_ = options.flag("clip");
        variances_ = options.reals("variances");
        variances_.resize(4, variances_.front());
        read_boxes(options);
    }

    void forward(Layer& layer) override {
        float* boxes = layer.top();
        const auto priors = static_cast<int64_t>(boxes_.size());
        const int64_t all = rows_ * columns_ * priors * 4;
        parallel_each(rows_, columns_ * priors * 8,
                      [&](int64_t row) { fill(boxes + row * columns_ * priors * 4, row); });
        if (clip_)
            for (int64_t i = 0; i < all; ++i) boxes[i] = std::min(std::max(boxes[i], 0.0F), 1.0F);
        float* variances = boxes + all;
        for (int64_t i = 0; i < all; ++i)
            variances[i] = static_cast<float>(variances_[static_cast<size_t>(i % 4)]);
    }

   private:
    // In pixels; the shift is that of its middle from the middle of its place.
    struct Box {
        float width, height, right, down;
    };

    void read_boxes(const Options& options) {
        const auto widths = options.reals("widths"), heights = options.reals("heights");
        const auto right = options.reals("shifts_x"), down = options.reals("shifts_y");
        boxes_.clear();
        for (size_t i = 0; i < widths.size(); ++i)
            boxes_.push_back({static_cast<float>(widths[i]), static_cast<float>(heights[i]),
                              static_cast<float>(right[i]), static_cast<float>(down[i])});
    }

    void fill(float* to, int64_t row) const {
        const float y = (static_cast<float>(row) + offset_) * step_h_;
        for (int64_t column = 0; column < columns_; ++column) {
            const float x = (static_cast<float>(column) + offset_) * step_w_;
            for (const Box& box : boxes_) {
                *to++ = part(x + box.right, -box.width, width_);
                *to++ = part(y + box.down, -box.height, height_);
                *to++ = part(x + box.right, box.width, width_);
                *to++ = part(y + box.down, box.height, height_);
            }
        }
    }

    static float part(float center, float size, double whole) {
        return static_cast<float>((static_cast<double>(center) + static_cast<double>(size) / 2) /
                                  whole);
    }

    int64_t rows_ = 0, columns_ = 0;
    double height_ = 0, width_ = 0;
    float step_h_ = 0, step_w_ = 0, offset_ = 0;
    bool clip_ = false;
    std::vector<double> variances_;
    std::vector<Box> boxes_;
};
}  // namespace

REGISTER_LAYER(PriorBox, PriorBox);
REGISTER_LAYER(PriorBoxClustered, PriorBox);

}  // namespace sn
