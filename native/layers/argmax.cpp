// The places of the largest values; of equals the later one (Caffe: argmax_layer.cpp).
#include <algorithm>

#include "../engine/parallel.hpp"
#include "no_gradient.hpp"

namespace sn {

namespace {
class ArgMax final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        along_axis_ = layer.options.has("axis");
        outer_ = layer.options.integer("outer");
        channels_ = layer.options.integer("channels");
        inner_ = layer.options.integer("inner");
        top_k_ = layer.options.integer("top_k");
        values_ = layer.options.flag("out_max_val");
    }

    void forward(Layer& layer) override {
        const float* x = layer.bottom();
        float* y = layer.top();
        parallel(
            outer_ * inner_,
            [&](int64_t begin, int64_t end) {
                std::vector<int64_t> places(static_cast<size_t>(channels_));
                for (int64_t i = begin; i < end; ++i) {
                    const float* from = x + i / inner_ * channels_ * inner_ + i % inner_;
                    find(from, places);
                    write(from, places, y, i);
                }
            },
            channels_ * 4);
    }

    void backward(Layer& layer) override { refuse_backward(layer); }

   private:
    // NaN comes after every number.
    static bool before(float a, int64_t i, float b, int64_t j) {
        if (a > b) return true;
        if (a < b) return false;
        const bool nan_a = a != a, nan_b = b != b;
        return nan_a == nan_b ? i > j : nan_b;
    }

    // Puts the best top_k places first.
    void find(const float* x, std::vector<int64_t>& places) const {
        const auto better = [&](int64_t i, int64_t j) {
            return before(x[i * inner_], i, x[j * inner_], j);
        };
        if (top_k_ == 1) {
            int64_t best = 0;
            for (int64_t c = 1; c < channels_; ++c)
                if (better(c, best)) best = c;
            places[0] = best;
            return;
        }
        for (int64_t c = 0; c < channels_; ++c) places[static_cast<size_t>(c)] = c;
        std::partial_sort(places.begin(), places.begin() + top_k_, places.end(), better);
    }

    void write(const float* x, const std::vector<int64_t>& places, float* y, int64_t i) const {
        for (int64_t k = 0; k < top_k_; ++k) {
            const int64_t place = places[static_cast<size_t>(k)];
            const auto number = static_cast<float>(place);
            if (along_axis_) {
                y[(i / inner_ * top_k_ + k) * inner_ + i % inner_] =
                    values_ ? x[place * inner_] : number;
            } else if (values_) {
                y[2 * i * top_k_ + k] = number;
                y[(2 * i + 1) * top_k_ + k] = x[place];
            } else {
                y[i * top_k_ + k] = number;
            }
        }
    }

    int64_t outer_ = 0, channels_ = 0, inner_ = 0, top_k_ = 1;
    bool along_axis_ = false, values_ = false;
};
}  // namespace

std::unique_ptr<Kernel> make_argmax() {
    return make<ArgMax>();
}

}  // namespace sn
