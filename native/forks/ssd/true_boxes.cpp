// The boxes of each record as the rows that SSD's layers read.
#include <algorithm>

#include "../../layers/no_gradient.hpp"

namespace sn {

namespace {
class TrueBoxes final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Shape& boxes = layer.bottoms[0]->shape();
        most_ = boxes[1], width_ = boxes[2];
        rows_ = boxes[0] * most_;
    }

    // Rows of item, label, instance, four corners, difficult; item -1 fills up.
    void forward(Layer& layer) override {
        const float* box = layer.bottom();
        float* row = layer.top();
        for (int64_t i = 0; i < rows_; ++i, box += width_, row += 8) {
            const bool there = box[0] >= 0;
            row[0] = there ? static_cast<float>(i / most_) : -1.0F;
            row[1] = box[0];
            row[2] = static_cast<float>(i % most_);
            std::copy_n(box + 1, 4, row + 3);
            row[7] = width_ > 5 ? box[5] : 0.0F;
        }
    }

    void backward(Layer& layer) override { refuse_backward(layer); }

   private:
    int64_t rows_ = 0, most_ = 1, width_ = 5;
};
}  // namespace

REGISTER_LAYER(TrueBoxes, TrueBoxes);

}  // namespace sn
