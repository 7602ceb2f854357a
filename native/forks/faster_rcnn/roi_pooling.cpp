// Regions of different sizes, each pooled to one size (roi_pooling_layer.cpp of Fast R-CNN).
#include <cfloat>
#include <cmath>

#include "../../layers/rows.hpp"
#include "regions.hpp"

namespace sn {

namespace {
// One side of a region: where it begins, and how long one of its bins is.
struct Side {
    int64_t begin = 0;
    float bin = 0;

    int64_t from(int64_t i, int64_t size) const {
        return inside(static_cast<int64_t>(std::floor(static_cast<float>(i) * bin)), size);
    }
    int64_t to(int64_t i, int64_t size) const {
        return inside(static_cast<int64_t>(std::ceil(static_cast<float>(i + 1) * bin)), size);
    }

   private:
    int64_t inside(int64_t at, int64_t size) const {
        return std::min(std::max<int64_t>(at + begin, 0), size);
    }
};

struct Region {
    int64_t image = 0;
    Side down, across;
};

class ROIPooling final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        Shape in = layer.shape();
        in.resize(4, 1);  // blobs of fewer axes are read as images too
        images_ = in[0], channels_ = in[1], high_ = in[2], wide_ = in[3];
        const auto pooled = layer.options.integers("pooled");
        pooled_high_ = pooled[0], pooled_wide_ = pooled[1];
        scale_ = static_cast<float>(layer.options.real("spatial_scale"));
        pad_ = static_cast<float>(layer.options.real("pad_ratio"));
        in.push_back(layer.tops[0]->count());
        if (in == seen_) return;
        seen_ = in;
        regions_.assign(static_cast<size_t>(layer.tops[0]->shape()[0]), {});
        largest_.assign(static_cast<size_t>(layer.tops[0]->count()), -1);
    }

    void forward(Layer& layer) override {
        find(layer);
        const float* x = layer.bottom();
        float* y = layer.top();
        const int64_t area = pooled_high_ * pooled_wide_;
        parallel(
            static_cast<int64_t>(regions_.size()) * channels_,
            [&](int64_t begin, int64_t end) {
                for (int64_t k = begin; k < end; ++k) {
                    const Region& region = regions_[static_cast<size_t>(k / channels_)];
                    const int64_t plane = region.image * channels_ + k % channels_;
                    pool(region, x + plane * high_ * wide_, y + k * area,
                         largest_.data() + k * area);
                }
            },
            area * 16);
    }

    // Threads share the channels out, so that no two add to the same value.
    void backward(Layer& layer) override {
        if (layer.propagate[1]) clear(layer.bottom_diff(1), layer.bottoms[1]->count());
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        clear(dx, layer.bottoms[0]->count());
        const int64_t area = pooled_high_ * pooled_wide_;
        parallel(
            channels_,
            [&](int64_t begin, int64_t end) {
                for (size_t n = 0; n < regions_.size(); ++n)
                    for (int64_t c = begin; c < end; ++c) {
                        const int64_t first = (static_cast<int64_t>(n) * channels_ + c) * area;
                        float* to = dx + (regions_[n].image * channels_ + c) * high_ * wide_;
                        for (int64_t i = first; i < first + area; ++i) {
                            const int32_t place = largest_[static_cast<size_t>(i)];
                            if (place >= 0) to[place] += dy[i];
                        }
                    }
            },
            static_cast<int64_t>(regions_.size()) * area);
    }

   private:
    void find(const Layer& layer) {
        const float* rois = layer.bottom(1);
        for (size_t n = 0; n < regions_.size(); ++n, rois += 5) {
            regions_[n].image = image_of(layer, rois, n, images_);
            regions_[n].across = side(rois[1], rois[3], pooled_wide_);
            regions_[n].down = side(rois[2], rois[4], pooled_high_);
        }
    }

    // A region whose corners are swapped has length 1.
    Side side(float first, float last, int64_t bins) const {
        const float pad = pad_ == 0 ? 0.0F : (last - first + 1) * pad_;
        const int64_t begin = pixel(first - pad);
        const int64_t length = std::max<int64_t>(pixel(last + pad) - begin + 1, 1);
        return {begin, static_cast<float>(length) / static_cast<float>(bins)};
    }

    int64_t pixel(float at) const { return static_cast<int64_t>(std::round(bounded(at * scale_))); }

    // An empty bin gives zero; of equal values the first is the largest.
    void pool(const Region& region, const float* x, float* y, int32_t* largest) const {
        for (int64_t i = 0; i < pooled_high_; ++i) {
            const int64_t top = region.down.from(i, high_), bottom = region.down.to(i, high_);
            for (int64_t j = 0; j < pooled_wide_; ++j) {
                const int64_t left = region.across.from(j, wide_);
                const int64_t right = region.across.to(j, wide_);
                float best = bottom <= top || right <= left ? 0.0F : -FLT_MAX;
                int64_t place = -1;
                for (int64_t h = top; h < bottom; ++h)
                    for (int64_t w = left; w < right; ++w)
                        if (x[h * wide_ + w] > best) best = x[h * wide_ + w], place = h * wide_ + w;
                *y++ = best;
                *largest++ = static_cast<int32_t>(place);
            }
        }
    }

    int64_t images_ = 0, channels_ = 0, high_ = 0, wide_ = 0;
    int64_t pooled_high_ = 1, pooled_wide_ = 1;
    float scale_ = 1, pad_ = 0;
    Shape seen_;
    std::vector<Region> regions_;
    std::vector<int32_t> largest_;  // where each result came from, -1: from nowhere
};
}  // namespace

std::unique_ptr<Kernel> make_roi_pooling() {
    return make<ROIPooling>();
}

}  // namespace sn
