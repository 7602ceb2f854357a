// Pooling of regions of interest.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "../../layers/rows.hpp"
#include "regions.hpp"

namespace sn {

namespace {
// Regions of different sizes, each pooled to one size (roi_pooling_layer.cpp of Fast R-CNN).
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
        scale_ = layer.options.real32("spatial_scale");
        pad_ = layer.options.real32("pad_ratio");
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
        parallel_each(static_cast<int64_t>(regions_.size()) * channels_, area * 16, [&](int64_t k) {
            const Region& region = regions_[static_cast<size_t>(k / channels_)];
            const int64_t plane = region.image * channels_ + k % channels_;
            pool(region, x + plane * high_ * wide_, y + k * area, largest_.data() + k * area);
        });
    }

    // Threads share the channels out, so that no two add to the same value.
    void backward(Layer& layer) override {
        layer.clear_bottom_diffs(1);
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        clear(dx, layer.bottoms[0]->count());
        const int64_t area = pooled_high_ * pooled_wide_;
        parallel_each(channels_, static_cast<int64_t>(regions_.size()) * area, [&](int64_t c) {
            for (size_t n = 0; n < regions_.size(); ++n) {
                const int64_t first = (static_cast<int64_t>(n) * channels_ + c) * area;
                float* to = dx + (regions_[n].image * channels_ + c) * high_ * wide_;
                for (int64_t i = first; i < first + area; ++i) {
                    const int32_t place = largest_[static_cast<size_t>(i)];
                    if (place >= 0) to[place] += dy[i];
                }
            }
        });
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

// Each region at the corners of its bins, by bilinear interpolation
// (Cascade R-CNN: roi_align_layer.cu; pooling of the corners follows as a layer of its own).
// A place along one axis between two pixels; `low` is -1 outside the image.
struct Spot {
    int64_t low = -1, high = -1;
    float share = 0;  // of the higher pixel
};

class ROIAlign final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Shape &in = layer.shape(), &out = layer.tops[0]->shape();
        images_ = in[0], channels_ = in[1], high_ = in[2], wide_ = in[3];
        grid_high_ = out[2], grid_wide_ = out[3];
        scale_ = layer.options.real32("spatial_scale");
        pad_ = layer.options.real32("pad_ratio");
        const auto regions = static_cast<size_t>(out[0]);
        image_.assign(regions, 0);
        rows_.assign(regions * static_cast<size_t>(grid_high_), {});
        columns_.assign(regions * static_cast<size_t>(grid_wide_), {});
    }

    void forward(Layer& layer) override {
        find(layer);
        const float* x = layer.bottom();
        float* y = layer.top();
        const int64_t area = grid_high_ * grid_wide_;
        parallel_each(static_cast<int64_t>(image_.size()) * channels_, area * 8, [&](int64_t k) {
            const int64_t n = k / channels_;
            const float* from = plane(x, n, k % channels_);
            float* to = y + k * area;
            each_spot(
                n,
                [&](int64_t at, const Spot& r, const Spot& c) {
                    const float *above = from + r.low * wide_, *below = from + r.high * wide_;
                    const float top = above[c.low] * (1 - c.share) + above[c.high] * c.share;
                    const float bottom = below[c.low] * (1 - c.share) + below[c.high] * c.share;
                    to[at] = top * (1 - r.share) + bottom * r.share;
                },
                [&](int64_t at) { to[at] = 0; });
        });
    }

    // Threads share the channels out, so that no two add to the same value.
    void backward(Layer& layer) override {
        layer.clear_bottom_diffs(1);
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        clear(dx, layer.bottoms[0]->count());
        const int64_t area = grid_high_ * grid_wide_;
        const auto regions = static_cast<int64_t>(image_.size());
        parallel_each(channels_, regions * area * 8, [&](int64_t c) {
            for (int64_t n = 0; n < regions; ++n) {
                float* to = const_cast<float*>(plane(dx, n, c));
                const float* from = dy + (n * channels_ + c) * area;
                each_spot(
                    n,
                    [&](int64_t at, const Spot& r, const Spot& s) {
                        float *above = to + r.low * wide_, *below = to + r.high * wide_;
                        const float up = from[at] * (1 - r.share), down = from[at] * r.share;
                        above[s.low] += up * (1 - s.share), above[s.high] += up * s.share;
                        below[s.low] += down * (1 - s.share), below[s.high] += down * s.share;
                    },
                    [](int64_t) {});
            }
        });
    }

   private:
    const float* plane(const float* x, int64_t n, int64_t channel) const {
        return x + (image_[static_cast<size_t>(n)] * channels_ + channel) * high_ * wide_;
    }

    template <class In, class Out>
    void each_spot(int64_t n, In&& in, Out&& out) const {
        const Spot* rows = rows_.data() + n * grid_high_;
        const Spot* columns = columns_.data() + n * grid_wide_;
        for (int64_t i = 0; i < grid_high_; ++i)
            for (int64_t j = 0; j < grid_wide_; ++j) {
                const int64_t at = i * grid_wide_ + j;
                rows[i].low < 0 || columns[j].low < 0 ? out(at) : in(at, rows[i], columns[j]);
            }
    }

    void find(const Layer& layer) {
        const float* region = layer.bottom(1);
        for (size_t n = 0; n < image_.size(); ++n, region += 5) {
            image_[n] = image_of(layer, region, n, images_);
            Spot* rows = rows_.data() + n * static_cast<size_t>(grid_high_);
            Spot* columns = columns_.data() + n * static_cast<size_t>(grid_wide_);
            const bool whole = divide(region[2], region[4], high_, grid_high_, rows);
            if (!divide(region[1], region[3], wide_, grid_wide_, columns) || !whole)
                std::fill_n(rows, grid_high_, Spot{});
        }
    }

    // Whether the side has any length.
    bool divide(float first, float last, int64_t size, int64_t grid, Spot* spots) const {
        const float pad = (last - first + 1) * pad_;
        const float begin = bounded((first - pad) * scale_) - 0.5F;
        const float end = bounded((last + pad) * scale_) - 0.5F;
        const float each = (end - begin) / static_cast<float>(grid - 1);
        const auto most = static_cast<float>(size - 1);
        for (int64_t i = 0; i < grid; ++i) {
            const float at = begin + static_cast<float>(i) * each;
            spots[i] = {};
            if (!(at >= -0.5F && at <= most + 0.5F)) continue;
            const auto low = static_cast<int64_t>(std::floor(at));
            spots[i].low = std::clamp<int64_t>(low, 0, size - 1);
            spots[i].high = std::clamp<int64_t>(low + 1, 0, size - 1);
            spots[i].share = std::clamp(at, 0.0F, most) - static_cast<float>(spots[i].low);
        }
        return end > begin;
    }

    int64_t images_ = 0, channels_ = 0, high_ = 0, wide_ = 0, grid_high_ = 2, grid_wide_ = 2;
    float scale_ = 1, pad_ = 0;
    std::vector<int64_t> image_;
    std::vector<Spot> rows_, columns_;
};
}  // namespace

REGISTER_LAYER(ROIPooling, ROIPooling);
REGISTER_LAYER(ROIAlign, ROIAlign);

}  // namespace sn
