// Default boxes around every place of a feature map (SSD's Caffe: prior_box_layer.cpp).
#include <cmath>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
class PriorBox final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        rows_ = options.integer("layer_h"), columns_ = options.integer("layer_w");
        height_ = options.real("img_h"), width_ = options.real("img_w");
        step_h_ = static_cast<float>(options.real("step_h"));
        step_w_ = static_cast<float>(options.real("step_w"));
        offset_ = static_cast<float>(options.real("offset"));
        clip_ = options.flag("clip");
        variances_ = options.reals("variances");
        variances_.resize(4, variances_.front());
        find_sizes(options);
    }

    void forward(Layer& layer) override {
        float* boxes = layer.top();
        const auto priors = static_cast<int64_t>(sizes_.size());
        const int64_t all = rows_ * columns_ * priors * 4;
        parallel(
            rows_,
            [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row)
                    fill(boxes + row * columns_ * priors * 4, row);
            },
            columns_ * priors * 8);
        if (clip_)
            for (int64_t i = 0; i < all; ++i) boxes[i] = std::min(std::max(boxes[i], 0.0F), 1.0F);
        float* variances = boxes + all;
        for (int64_t i = 0; i < all; ++i)
            variances[i] = static_cast<float>(variances_[static_cast<size_t>(i % 4)]);
    }

   private:
    struct Size {
        float width, height;
    };

    // Square of the smallest size, square between it and the largest, then one for each ratio.
    // SSD takes sizes as whole numbers.
    void find_sizes(const Options& options) {
        const auto least = options.reals("min_sizes"), most = options.reals("max_sizes");
        const auto ratios = options.reals("aspect_ratios");
        sizes_.clear();
        for (size_t s = 0; s < least.size(); ++s) {
            const double small = std::trunc(least[s]);
            add(small, small);
            if (!most.empty()) {
                const double middle = std::sqrt(small * std::trunc(most[s]));
                add(middle, middle);
            }
            for (size_t r = 1; r < ratios.size(); ++r) {
                const double root = std::sqrt(static_cast<double>(static_cast<float>(ratios[r])));
                add(small * root, small / root);
            }
        }
    }

    void add(double width, double height) {
        sizes_.push_back({static_cast<float>(width), static_cast<float>(height)});
    }

    void fill(float* to, int64_t row) const {
        const float y = (static_cast<float>(row) + offset_) * step_h_;
        for (int64_t column = 0; column < columns_; ++column) {
            const float x = (static_cast<float>(column) + offset_) * step_w_;
            for (const Size& size : sizes_) {
                *to++ = part(x, -size.width, width_);
                *to++ = part(y, -size.height, height_);
                *to++ = part(x, size.width, width_);
                *to++ = part(y, size.height, height_);
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
    std::vector<Size> sizes_;
};
}  // namespace

std::unique_ptr<Kernel> make_prior_box() {
    return make<PriorBox>();
}

}  // namespace sn
