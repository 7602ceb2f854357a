// A blob as it is, whose gradient is multiplied by the weight of each record.
#include "../engine/layer.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
class RecordWeights final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        layer.tops[0]->data.share(layer.bottoms[0]->data);
        layer.tops[0]->weights = layer.bottoms[1];
        records_ = layer.options.integer("records");
        rows_ = layer.options.integer("before") * records_;
        after_ = layer.options.integer("after");
    }
    bool looks_back(const Layer&, Role role, size_t i) const override {
        return role == Role::bottom && i == 1;
    }
    void forward(Layer&) override {}
    void backward(Layer& layer) override {
        if (layer.propagate[1]) layer.refuse("the weights of records take no gradient");
        if (!layer.propagate[0]) return;
        const float *dy = layer.top_diff(), *weights = layer.bottom(1);
        float* dx = layer.bottom_diff();
        parallel(
            rows_,
            [=](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                    const float weight = weights[row % records_];
                    for (int64_t i = row * after_; i < (row + 1) * after_; ++i)
                        dx[i] = weight * dy[i];
                }
            },
            after_);
    }

   private:
    int64_t records_ = 0, rows_ = 0, after_ = 0;
};
}  // namespace

std::unique_ptr<Kernel> make_record_weights() {
    return make<RecordWeights>();
}

}  // namespace sn
