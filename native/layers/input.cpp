// Layers that compute nothing: inputs, layers of Python, a parameter as a blob, a sink.
#include <algorithm>

#include "../engine/layer.hpp"
#include "../engine/nan.hpp"
#include "../engine/net.hpp"

namespace sn {

namespace {
// Layers whose work is done elsewhere: Python computes between two native runs.
class Host final : public Kernel {
   public:
    void forward(Layer&) override {}
};

// Somebody puts values into the tops; if layers round them to eight bits, NaN is refused here.
class Input final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const auto& all = layer.net->layers;
        rounds_ = std::any_of(all.begin(), all.end(), [](const Layer& one) { return one.int8; });
    }
    void forward(Layer& layer) override {
        if (!rounds_) return;
        for (const Blob* top : layer.tops)
            if (has_nan(top->data)) refuse_nan(layer, *top);
    }

   private:
    [[noreturn]] static void refuse_nan(const Layer& layer, const Blob& top) {
        const float* values = top.data.read();
        const int64_t records = top.shape().empty() ? 1 : top.shape()[0];
        const int64_t size = top.count() / records;
        int64_t record = 0;
        while (!any_nan(values, record * size, (record + 1) * size)) ++record;
        layer.refuse("blob '" + top.name + "' holds NaN in record " + std::to_string(record) +
                     ", and eight bits have no NaN: leave the record out, or predict in float32");
    }

    bool rounds_ = false;
};

// A learnable blob as a top (Caffe: parameter_layer.hpp).
class Parameter final : public LinearKernel {
   public:
    // A layer in place, maybe on a view of the top, would change the parameter: it gets a copy.
    void reshape(Layer& layer) override {
        const auto& all = layer.net->layers;
        copies_ = std::any_of(all.begin(), all.end(), [&](const Layer& other) {
            return other.index > layer.index && !other.bottoms.empty() && !other.tops.empty() &&
                   other.in_place() && other.tops[0]->count() == layer.params[0]->count();
        });
        if (!copies_) layer.tops[0]->data.share(layer.params[0]->data);
    }
    void forward(Layer& layer) override {
        if (copies_) layer.tops[0]->data.copy(layer.params[0]->data);
    }

    void backward(Layer& layer) override {
        if (!layer.learns[0]) return;
        const float* dy = layer.top_diff();
        float* sum = layer.param_diff(0);
        for (int64_t i = 0; i < layer.params[0]->count(); ++i) sum[i] += dy[i];
    }

   private:
    bool copies_ = false;
};

// Reads blobs that no other layer reads (Caffe: silence_layer.cpp).
class Silence final : public LinearKernel {
   public:
    void forward(Layer&) override {}

    void backward(Layer& layer) override { layer.clear_bottom_diffs(0); }
};
}  // namespace

REGISTER_LAYER(Host, Host);
REGISTER_LAYER(Input, Input);
REGISTER_LAYER(Parameter, Parameter);
REGISTER_LAYER(Silence, Silence);

}  // namespace sn
