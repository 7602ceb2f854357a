// One axis from its end to its beginning (CTPN's Caffe: reverse_layer.cpp).
#include <algorithm>

#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
class Reverse final : public Kernel {
   public:
    bool only_reads() const override { return true; }

    void reshape(Layer& layer) override {
        outer_ = layer.options.integer("outer"), many_ = layer.options.integer("many");
        inner_ = layer.options.integer("inner");
    }

    void forward(Layer& layer) override { turn(layer.bottom(), layer.top()); }

    bool looks_back(const Layer&, Role, size_t) const override { return false; }

    void backward(Layer& layer) override {
        if (layer.propagate[0]) turn(layer.top_diff(), layer.bottom_diff());
    }

   private:
    void turn(const float* from, float* to) const {
        const int64_t many = many_, inner = inner_;
        parallel(
            outer_ * many,
            [=](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                    const int64_t place = r % many, other = r - place + many - 1 - place;
                    std::copy_n(from + other * inner, inner, to + r * inner);
                }
            },
            inner);
    }

    int64_t outer_ = 0, many_ = 0, inner_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_reverse() {
    return make<Reverse>();
}

}  // namespace sn
