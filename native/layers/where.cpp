// Of two values the first where a condition holds, else the second.
#include "../engine/plan/attention_part.hpp"
#include "no_gradient.hpp"
#include "spread.hpp"

namespace sn {

namespace {
class Where final : public Kernel, public IsAttentionPart<AttentionPart::choice> {
   public:
    bool only_reads() const override { return true; }
    bool looks_back(const Layer&, Role role, size_t i) const override {
        return role == Role::bottom && i == 0;
    }

    void reshape(Layer& layer) override { spread_.reshape(layer); }

    void forward(Layer& layer) override {
        const float *c = layer.bottom(0), *a = layer.bottom(1), *b = layer.bottom(2);
        float* y = layer.top();
        spread_.each_run(layer, [=](int64_t at, int64_t many, const Steps& from, const Steps& by) {
            for (int64_t i = 0; i < many; ++i)
                y[at + i] =
                    c[from[0] + i * by[0]] != 0 ? a[from[1] + i * by[1]] : b[from[2] + i * by[2]];
        });
    }

    void backward(Layer& layer) override {
        refuse_gradient_of(layer, 0, "condition");
        const float *c = layer.bottom(0), *dy = layer.top_diff();
        for (size_t side : {1, 2}) {
            if (!layer.propagate[side]) continue;
            const bool first = side == 1;
            spread_.give(layer, side, [=](int64_t at, const Steps& from) {
                return (c[from[0]] != 0) == first ? dy[at] : 0;
            });
        }
    }

   private:
    using Steps = Spread<3>::Steps;
    Spread<3> spread_;
};
}  // namespace

std::unique_ptr<Kernel> make_where() {
    return make<Where>();
}

}  // namespace sn
