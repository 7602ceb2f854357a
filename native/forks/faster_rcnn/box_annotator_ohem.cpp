// Keeps the labels of the regions with the largest losses of each image
// (R-FCN: box_annotator_ohem_layer.cu).
#include <algorithm>
#include <numeric>

#include "../../layers/no_gradient.hpp"
#include "regions.hpp"

namespace sn {

namespace {
class BoxAnnotatorOHEM final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        kept_ = layer.options.integer("roi_per_img");
        ignore_ = static_cast<float>(layer.options.integer("ignore_label"));
        const Shape& weights = layer.tops[1]->shape();
        channels_ = weights[1], area_ = weights[2] * weights[3];
        order_.resize(static_cast<size_t>(layer.bottoms[1]->count()));
    }

    void forward(Layer& layer) override {
        const float *regions = layer.bottom(0), *losses = layer.bottom(1);
        const float *labels = layer.bottom(2), *weights = layer.bottom(3);
        float *kept = layer.top(0), *inside = layer.top(1);
        std::fill_n(kept, layer.tops[0]->count(), ignore_);
        std::fill_n(inside, layer.tops[1]->count(), 0.0F);
        std::iota(order_.begin(), order_.end(), 0);
        for (const int64_t i : order_)
            if (std::isnan(losses[i]))
                layer.refuse("the loss of region " + std::to_string(i) + " is nan");
        std::stable_sort(order_.begin(), order_.end(),
                         [losses](int64_t a, int64_t b) { return losses[a] > losses[b]; });
        taken_.clear();
        for (const int64_t i : order_) {
            const int64_t n = i / area_, place = i % area_;
            const float image = regions[n * 5 * area_ + place];
            if (!(image >= 0))
                layer.refuse("region " + std::to_string(i) + " is of image " + number_text(image));
            if (taken_[static_cast<int64_t>(bounded(image))]++ >= kept_) continue;
            kept[i] = labels[i];
            for (int64_t c = 0; c < channels_; ++c) {
                const int64_t at = (n * channels_ + c) * area_ + place;
                inside[at] = weights[at];
            }
        }
    }

    void backward(Layer& layer) override { refuse_backward(layer); }

   private:
    int64_t kept_ = 1, channels_ = 0, area_ = 1;
    float ignore_ = -1;
    std::vector<int64_t> order_;
    std::map<int64_t, int64_t> taken_;  // how many of an image
};
}  // namespace

std::unique_ptr<Kernel> make_box_annotator_ohem() {
    return make<BoxAnnotatorOHEM>();
}

}  // namespace sn
