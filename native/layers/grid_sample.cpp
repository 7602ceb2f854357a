// An image looked up at places that another blob holds (PyTorch's grid_sample, ONNX's GridSample).
#include <cmath>

#include "../engine/layer.hpp"
#include "rows.hpp"

namespace sn {

namespace {
// The lines along one axis that a place is made of, their shares, and how these grow with the
// place.
struct Mixture {
    int64_t line[4] = {0, 0, 0, 0};
    float share[4] = {0, 0, 0, 0};
    float slope[4] = {0, 0, 0, 0};
};

class Axis {
   public:
    Axis(const Options& options, int64_t size)
        : mode_(options.text("mode")),
          padding_(options.text("padding_mode")),
          corners_(options.flag("align_corners")),
          size_(size),
          last_(static_cast<float>(size - 1)) {}

    int64_t taps() const { return mode_ == "nearest" ? 1 : mode_ == "bilinear" ? 2 : 4; }

    Mixture at(float place) const {
        constexpr float far = 1e5F;  // beyond every image, as is what is no number
        const auto size = static_cast<float>(size_);
        const float near = std::isnan(place) ? -far : std::min(std::max(place, -far), far);
        float pixel = corners_ ? (near + 1) / 2 * last_ : ((near + 1) * size - 1) / 2;
        float slope = near != place ? 0 : corners_ ? last_ / 2 : size / 2;
        Mixture found;
        if (taps() == 4) {
            cubic(pixel, slope, found);
            return found;
        }
        slope *= inside(pixel);
        if (taps() == 1) {
            add(found, 0, whole(std::nearbyint(pixel)), 1, 0);
            return found;
        }
        const float low = std::floor(pixel), part = pixel - low;
        add(found, 0, whole(low), 1 - part, -slope);
        add(found, 1, whole(low) + 1, part, slope);
        return found;
    }

   private:
    // Far beyond any image it does not matter where.
    static int64_t whole(float pixel) {
        return static_cast<int64_t>(std::min(std::max(pixel, -1e9F), 1e9F));
    }

    // Zeros have no share.
    void add(Mixture& to, int tap, int64_t line, float share, float slope) const {
        if (line < 0 || line >= size_) return;
        to.line[tap] = line, to.share[tap] = share, to.slope[tap] = slope;
    }

    // Moves a place into the image, as the padding says; returns how it moves with the place.
    float inside(float& pixel) const {
        float turn = 1;
        if (padding_ == "zeros") return turn;
        if (padding_ == "reflection") turn = reflected(pixel);
        if (pixel <= 0 || pixel >= last_) turn = 0;
        pixel = std::min(std::max(pixel, 0.0F), last_);
        return turn;
    }

    // Between the centres of the first and the last pixel, or between their outer edges.
    float reflected(float& pixel) const {
        const float first = corners_ ? 0 : -0.5F, span = corners_ ? last_ : last_ + 1;
        if (span == 0) {
            pixel = 0;
            return 0;
        }
        const float turn = pixel < first ? -1.0F : 1.0F;
        const float rest = std::fmod(std::fabs(pixel - first), 2 * span);
        pixel = first + (rest < span ? rest : 2 * span - rest);
        return rest < span ? turn : -turn;
    }

    // Keys' kernel (1981) for a = -0.75.
    void cubic(float pixel, float slope, Mixture& found) const {
        constexpr float a = -0.75F;
        const float low = std::floor(pixel), t = pixel - low;
        const auto outer = [](float d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
        const auto inner = [](float d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
        const auto outer_slope = [](float d) { return (3 * a * d - 10 * a) * d + 8 * a; };
        const auto inner_slope = [](float d) { return (3 * (a + 2) * d - 2 * (a + 3)) * d; };
        const float shares[4] = {outer(1 + t), inner(t), inner(1 - t), outer(2 - t)};
        const float slopes[4] = {outer_slope(1 + t), inner_slope(t), -inner_slope(1 - t),
                                 -outer_slope(2 - t)};
        for (int k = 0; k < 4; ++k) {
            float line = low - 1 + static_cast<float>(k);
            inside(line);
            add(found, k, whole(std::nearbyint(line)), shares[k], slopes[k] * slope);
        }
    }

    const std::string &mode_, &padding_;
    bool corners_;
    int64_t size_;
    float last_;
};

class GridSample final : public Kernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        const Shape &in = layer.shape(), &out = layer.tops[0]->shape();
        records_ = in[0], channels_ = in[1], high_ = in[2], wide_ = in[3];
        pixels_ = out[2] * out[3];
    }

    void forward(Layer& layer) override {
        const Axis rows(layer.options, high_), columns(layer.options, wide_);
        const float *x = layer.bottom(), *grid = layer.bottom(1);
        float* y = layer.top();
        const int64_t taps = columns.taps();
        parallel_each(records_ * pixels_, channels_ * taps * taps + 16, [&](int64_t at) {
            const Mixture across = columns.at(grid[2 * at]), down = rows.at(grid[2 * at + 1]);
            const int64_t first = at / pixels_ * channels_;
            for (int64_t c = 0; c < channels_; ++c)
                y[(first + c) * pixels_ + at % pixels_] = mixed(
                    x + (first + c) * high_ * wide_, across.share, down.share, across, down, taps);
        });
    }

    bool looks_back(const Layer& layer, Role role, size_t i) const override {
        return role == Role::bottom &&
               (i == 1 || (layer.propagate.size() > 1 && layer.propagate[1]));
    }

    void backward(Layer& layer) override {
        const Axis rows(layer.options, high_), columns(layer.options, wide_);
        const int64_t taps = columns.taps();
        if (layer.propagate[0]) to_image(layer, rows, columns, taps);
        if (layer.propagate[1]) to_grid(layer, rows, columns, taps);
    }

   private:
    float mixed(const float* image, const float* across_by, const float* down_by,
                const Mixture& across, const Mixture& down, int64_t taps) const {
        float sum = 0;
        for (int64_t k = 0; k < taps; ++k) {
            float line = 0;
            for (int64_t m = 0; m < taps; ++m)
                line += across_by[m] * image[down.line[k] * wide_ + across.line[m]];
            sum += down_by[k] * line;
        }
        return sum;
    }

    void to_image(Layer& layer, const Axis& rows, const Axis& columns, int64_t taps) const {
        const float *dy = layer.top_diff(), *grid = layer.bottom(1);
        float* dx = layer.bottom_diff();
        parallel_each(records_ * channels_, pixels_ * (taps * taps + 16), [&](int64_t plane) {
            float* image = dx + plane * high_ * wide_;
            std::fill_n(image, high_ * wide_, 0.0F);
            for (int64_t i = 0; i < pixels_; ++i) {
                const float* place = grid + (plane / channels_ * pixels_ + i) * 2;
                const Mixture across = columns.at(place[0]), down = rows.at(place[1]);
                const float given = dy[plane * pixels_ + i];
                for (int64_t k = 0; k < taps; ++k)
                    for (int64_t m = 0; m < taps; ++m)
                        image[down.line[k] * wide_ + across.line[m]] +=
                            given * down.share[k] * across.share[m];
            }
        });
    }

    void to_grid(Layer& layer, const Axis& rows, const Axis& columns, int64_t taps) const {
        const float *dy = layer.top_diff(), *grid = layer.bottom(1), *x = layer.bottom();
        float* dg = layer.bottom_diff(1);
        parallel_each(records_ * pixels_, 2 * channels_ * taps * taps + 16, [&](int64_t at) {
            const Mixture across = columns.at(grid[2 * at]), down = rows.at(grid[2 * at + 1]);
            const int64_t first = at / pixels_ * channels_;
            float sums[2] = {0, 0};
            for (int64_t c = 0; c < channels_; ++c) {
                const float* image = x + (first + c) * high_ * wide_;
                const float given = dy[(first + c) * pixels_ + at % pixels_];
                sums[0] += given * mixed(image, across.slope, down.share, across, down, taps);
                sums[1] += given * mixed(image, across.share, down.slope, across, down, taps);
            }
            dg[2 * at] = sums[0], dg[2 * at + 1] = sums[1];
        });
    }

    int64_t records_ = 0, channels_ = 0, high_ = 0, wide_ = 0, pixels_ = 0;
};
}  // namespace

REGISTER_LAYER(GridSample, GridSample);

}  // namespace sn
