// The average of each bin of a region, every bin in channels of its own
// (R-FCN: psroi_pooling_layer.cu).
#include <algorithm>

#include "../../layers/rows.hpp"
#include "regions.hpp"

namespace sn {

namespace {
struct Bin {
    int64_t begin, end;
};

class PSROIPooling final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Shape& in = layer.shape();
        images_ = in[0], channels_ = in[1], high_ = in[2], wide_ = in[3];
        group_ = layer.options.integer("group_size");
        outputs_ = layer.options.integer("output_dim");
        scale_ = layer.options.real32("spatial_scale");
        const auto regions = static_cast<size_t>(layer.tops[0]->shape()[0]);
        image_.assign(regions, 0);
        rows_.assign(regions * static_cast<size_t>(group_), {0, 0});
        columns_.assign(regions * static_cast<size_t>(group_), {0, 0});
    }

    void forward(Layer& layer) override {
        find(layer);
        const float* x = layer.bottom();
        float* y = layer.top();
        each_plane(layer.tops[0]->count(), [&](int64_t n, int64_t bin, int64_t plane, int64_t top) {
            const auto [rows, columns] = window(n, bin);
            const float* from = x + plane * high_ * wide_;
            float sum = 0;
            for (int64_t h = rows.begin; h < rows.end; ++h)
                for (int64_t w = columns.begin; w < columns.end; ++w) sum += from[h * wide_ + w];
            const int64_t area = (rows.end - rows.begin) * (columns.end - columns.begin);
            y[top] = area > 0 ? sum / static_cast<float>(area) : 0.0F;
        });
    }

    // One thread adds to a plane: threads share out the channels.
    void backward(Layer& layer) override {
        layer.clear_bottom_diffs(1);
        if (!layer.propagate[0]) return;
        const float* dy = layer.top_diff();
        float* dx = layer.bottom_diff();
        clear(dx, layer.bottoms[0]->count());
        const int64_t bins = group_ * group_, regions = static_cast<int64_t>(image_.size());
        parallel_each(outputs_ * bins, regions * 32, [&](int64_t c) {
            for (int64_t n = 0; n < regions; ++n) {
                const auto [rows, columns] = window(n, c % bins);
                const int64_t area = (rows.end - rows.begin) * (columns.end - columns.begin);
                if (area <= 0) continue;
                const float share = dy[n * outputs_ * bins + c] / static_cast<float>(area);
                float* to = dx + (image_[static_cast<size_t>(n)] * channels_ + c) * high_ * wide_;
                for (int64_t h = rows.begin; h < rows.end; ++h)
                    for (int64_t w = columns.begin; w < columns.end; ++w)
                        to[h * wide_ + w] += share;
            }
        });
    }

   private:
    // body(region, bin, plane of the input, place in the top)
    template <class F>
    void each_plane(int64_t count, F&& body) const {
        const int64_t bins = group_ * group_, one = outputs_ * bins;
        parallel_each(count, 64, [&](int64_t i) {
            const int64_t n = i / one, c = i % one;
            body(n, c % bins, image_[static_cast<size_t>(n)] * channels_ + c, i);
        });
    }

    std::pair<Bin, Bin> window(int64_t n, int64_t bin) const {
        return {rows_[static_cast<size_t>(n * group_ + bin / group_)],
                columns_[static_cast<size_t>(n * group_ + bin % group_)]};
    }

    void find(const Layer& layer) {
        const float* region = layer.bottom(1);
        for (size_t n = 0; n < image_.size(); ++n, region += 5) {
            image_[n] = image_of(layer, region, n, images_);
            const size_t first = n * static_cast<size_t>(group_);
            divide(region[1], region[3], wide_, columns_.data() + first);
            divide(region[2], region[4], high_, rows_.data() + first);
        }
    }

    // A side from the first pixel to behind the last, at least a tenth long.
    void divide(float first, float last, int64_t size, Bin* bins) const {
        const float begin = std::round(bounded(first)) * scale_;
        const float end = (std::round(bounded(last)) + 1) * scale_;
        const float each = std::max(end - begin, 0.1F) / static_cast<float>(group_);
        const auto inside = [size](float at) {
            return std::clamp<int64_t>(static_cast<int64_t>(bounded(at)), 0, size);
        };
        for (int64_t i = 0; i < group_; ++i) {
            bins[i].begin = inside(std::floor(static_cast<float>(i) * each + begin));
            bins[i].end = inside(std::ceil(static_cast<float>(i + 1) * each + begin));
            bins[i].end = std::max(bins[i].end, bins[i].begin);
        }
    }

    int64_t images_ = 0, channels_ = 0, high_ = 0, wide_ = 0, group_ = 1, outputs_ = 0;
    float scale_ = 1;
    std::vector<int64_t> image_;
    std::vector<Bin> rows_, columns_;  // of each region its group_ bins
};
}  // namespace

REGISTER_LAYER(PSROIPooling, PSROIPooling);

}  // namespace sn
