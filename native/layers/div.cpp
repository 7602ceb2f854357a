// One value divided by another.
#include "spread.hpp"

namespace sn {

namespace {
class Div final : public Kernel {
   public:
    bool only_reads() const override { return true; }
    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }

    void reshape(Layer& layer) override { spread_.reshape(layer); }

    void forward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1);
        float* y = layer.top();
        spread_.each_run(layer, [=](int64_t at, int64_t many, const Steps& from, const Steps& by) {
            for (int64_t i = 0; i < many; ++i)
                y[at + i] = a[from[0] + i * by[0]] / b[from[1] + i * by[1]];
        });
    }

    void backward(Layer& layer) override {
        const float *a = layer.bottom(0), *b = layer.bottom(1), *dy = layer.top_diff();
        if (layer.propagate[0])
            spread_.give(layer, 0,
                         [=](int64_t at, const Steps& from) { return dy[at] / b[from[1]]; });
        if (layer.propagate[1])
            spread_.give(layer, 1, [=](int64_t at, const Steps& from) {
                return -dy[at] * a[from[0]] / (b[from[1]] * b[from[1]]);
            });
    }

   private:
    using Steps = Spread<2>::Steps;
    Spread<2> spread_;
};
}  // namespace

std::unique_ptr<Kernel> make_div() {
    return make<Div>();
}

}  // namespace sn
