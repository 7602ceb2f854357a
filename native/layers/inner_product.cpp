// Fully connected: one matrix product each way (Caffe: inner_product_layer.cpp).
#include <algorithm>
#include <cmath>
#include <optional>

#include "../engine/int8.hpp"
#include "../engine/matmul/few_rows.hpp"
#include "../engine/matmul/gemm.hpp"
#include "../engine/matmul/int8_product.hpp"
#include "../engine/matmul/product.hpp"
#include "../engine/matmul/transposed_product.hpp"
#include "../engine/nan.hpp"
#include "../engine/net.hpp"
#include "../engine/parallel.hpp"

namespace sn {

namespace {
class InnerProduct final : public Kernel {
   public:
    bool only_reads() const override { return true; }
    std::optional<double> products(const Layer& layer) const override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        return layer.in_float32(static_cast<double>(count(layer.shape(), 0, axis)) *
                                static_cast<double>(layer.params[0]->count()));
    }

    // Behind rows the function is computed while they are in the cache.
    Followers followers(const Layer& layer) const override {
        return layer.train ? Followers::none : Followers::sum_and_ending;
    }
    bool fuses() const override { return true; }

    bool rounds(const Layer& layer, const Blob& bottom) const override {
        return layer.net->factors == dnnl::memory::data_type::bf16 && !layer.has_gradients() &&
               !layer.int8 && !layer.options.flag("normalize", false) &&
               layer.params[0]->count() > little && &bottom == layer.bottoms[0] &&
               &bottom != layer.fused_other;
    }

    void reshape(Layer& layer) override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        rows_ = count(layer.shape(), 0, axis);
        inputs_ = count(layer.shape(), axis, layer.shape().size());
        outputs_ = layer.options.integer("num_output");
        transpose_ = layer.options.flag("transpose");
        bias_ = layer.options.flag("bias_term");
        normalize_ = layer.options.flag("normalize", false);
        product_ = {};
        few_ = packed_ = false;
        turned_.reset(), turned_data_.reset();
        const bool empty = rows_ == 0 || inputs_ == 0 || outputs_ == 0;
        int8_.reset(), int8_fused_.reset();
        const bool tests = !layer.has_gradients();
        narrow_ = layer.net->narrow() && !empty && !(tests && inputs_ * outputs_ <= little);
        keeps_ = tests && !normalize_ && layer.params[0]->data.storage().version() != 0;
        ending_.reset(), fused_ = {};
        if (layer.int8 && tests && !normalize_ && !empty && layer.bottoms[0]->step > 0)
            make_int8(layer);
        else if (narrow_)
            make_narrow(layer);
        else if (!empty)
            make_products(layer);
    }

    void forward(Layer& layer) override {
        if (normalize_) normalize_rows(layer);
        const bool fuse = layer.fused && layer.fused_last;
        Blob& made = fuse ? *layer.fused_last->tops[0] : *layer.tops[0];
        Tensor& top = made.data;
        if (forward(layer, made, fuse) || !fuse) return;
        if (layer.fused_sum)
            map(top, layer.fused_other->data, top, true, [](float y, float x) { return y + x; });
        if (layer.fused_relu)
            map(top, top, true, [](float y) { return y < 0 ? 0.0F : y; });
        else if (const auto& end = layer.fused_ending)
            finish(*end, ending_, top);
    }

    // Whether what follows was computed, too.
    bool forward(Layer& layer, Blob& top, bool fuse) {
        const float* bias = bias_ ? layer.param(1) : nullptr;
        if (int8_) return forward_int8(layer, top, fuse);
        if (narrow_ || packed_) return forward_packed(layer, top, fuse);
        float* y = top.data.write();
        if (turned_)
            turned_->run(layer.param(0), layer.bottom(), bias, y);
        else if (few_)
            multiply_few_rows(rows_, outputs_, inputs_, layer.bottom(), layer.param(0), bias, y);
        else if (product_)
            multiply(layer, bias, y);
        else
            fill_bias(bias, y);
        return false;
    }

    void multiply(const Layer& layer, const float* bias, float* y) const {
        Arguments arguments = {
            {DNNL_ARG_SRC,
             {plain_desc({rows_, inputs_}), cpu(), const_cast<float*>(layer.bottom())}},
            {DNNL_ARG_WEIGHTS, {weights_, cpu(), const_cast<float*>(layer.param(0))}},
            {DNNL_ARG_DST, {plain_desc({rows_, outputs_}), cpu(), y}}};
        if (bias)
            arguments.add(DNNL_ARG_BIAS,
                          dnnl::memory(plain_desc({1, outputs_}), cpu(), const_cast<float*>(bias)));
        run(product_, arguments);
    }

    void backward(Layer& layer) override {
        const float* dy = layer.top_diff();
        if (narrow_) {
            backward_narrow(layer);
        } else if (layer.learns[0]) {
            const float* x = layer.bottom();
            bool adds = true;
            float* sums = layer.param_diff(0, adds);
            const float keep = adds ? 1.0F : 0.0F;
            if (transpose_)
                gemm(true, false, inputs_, outputs_, rows_, 1, x, dy, keep, sums);
            else
                gemm(true, false, outputs_, inputs_, rows_, 1, dy, x, keep, sums);
        }
        if (bias_ && layer.learns[1]) {
            float* sums = layer.param_diff(1);
            parallel(outputs_, rows_, [&](int64_t begin, int64_t end) {
                for (int64_t o = begin; o < end; o += 64) add_rows(dy, sums, o, end);
            });
        }
        if (!layer.propagate[0] || narrow_) return;
        if (turned_data_)
            turned_data_->run(layer.param(0), dy, nullptr, layer.bottom_diff());
        else
            gemm(false, transpose_, rows_, inputs_, outputs_, 1, dy, layer.param(0), 0,
                 layer.bottom_diff());
    }

    bool looks_back(const Layer& layer, Role role, size_t) const override {
        return layer.learns[0] && role == Role::bottom;
    }

   private:
    // With so few weights a product takes no longer than rounding its values.
    static constexpr int64_t little = 1 << 13;

    // happynear's fork: each row of the weights gets length 1, in the parameter itself.
    void normalize_rows(const Layer& layer) const {
        float* weights = layer.params[0]->data.edit();
        const int64_t width = inputs_;
        parallel_each(outputs_, width * 3, [=](int64_t r) {
            float* row = weights + r * width;
            double squares = 1e-6;
            for (int64_t i = 0; i < width; ++i)
                squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
            const auto by = static_cast<float>(1.0 / std::sqrt(squares));
            for (int64_t i = 0; i < width; ++i) row[i] *= by;
        });
    }

    void make_products(const Layer& layer) {
        few_ = rows_ <= few_rows && !transpose_;
        if (few_) return;
        const bool few =
            TransposedProduct::fewest <= rows_ && rows_ <= TransposedProduct::most && !transpose_;
        packed_ = !few && keeps_;
        if (packed_)
            make_packed(layer);
        else if (few)
            turned_.emplace().reshape(rows_, outputs_, inputs_, false);
        else
            make_product();
        // Here the matrix is copied either way: turning pays where it does not fit a cache.
        constexpr int64_t fewest = 24, large = int64_t{1} << 22;
        if (few && rows_ >= fewest && inputs_ * outputs_ >= large && layer.propagate[0])
            turned_data_.emplace().reshape(rows_, inputs_, outputs_, true);
    }

    // oneDNN's matmul reads weights in Caffe's order about twice as fast as its sgemm does.
    void make_product() {
        const dnnl::memory::dims rows = {outputs_, 1}, columns = {1, inputs_};
        weights_ = {{inputs_, outputs_}, dnnl::memory::data_type::f32, transpose_ ? rows : columns};
        product_ = dnnl::matmul(
            dnnl::matmul::primitive_desc(cpu(), plain_desc({rows_, inputs_}), weights_,
                                         bias_ ? plain_desc({1, outputs_}) : dnnl::memory::desc(),
                                         plain_desc({rows_, outputs_}), attributes()));
    }

    void make_int8(const Layer& layer) {
        const Blob& bottom = *layer.bottoms[0];
        const Int8 x = {
            {{rows_, inputs_}, int8_type(bottom.is_signed), dnnl::memory::format_tag::ab},
            bottom.step};
        const bool biased = bias_ || !layer.int8_bias.empty();
        const Int8Product::Sizes sizes = {rows_, inputs_, outputs_, transpose_, biased};
        int8_.emplace();
        const auto stored = stored_in_int8(layer);
        if (!int8_->reshape(sizes, x, {}, stored)) int8_->reshape(sizes, x, {}, {});
        if (!layer.fused_last) return;
        const ProductEnd end = end_of(layer);
        const auto last = stored_in_int8(*layer.fused_last);
        int8_fused_.emplace();
        if (!int8_fused_->reshape(sizes, x, end, last) && !int8_fused_->reshape(sizes, x, end, {}))
            int8_fused_.reset();
    }

    // Where only layers read it that multiply eight bits.
    std::optional<Int8> stored_in_int8(const Layer& last) const {
        const Blob& top = *last.tops[0];
        if (!may_store_int8(last)) return std::nullopt;
        for (const Layer* reader : top.readers)
            if (!reader->int8) return std::nullopt;
        return Int8{{{rows_, outputs_}, int8_type(top.is_signed), dnnl::memory::format_tag::ab},
                    top.step};
    }

    static ProductEnd end_of(const Layer& layer) {
        ProductEnd end = {layer.fused_sum != nullptr, layer.fused_ending};
        if (layer.fused_relu) end.function = relu_ending;
        return end;
    }

    bool forward_int8(Layer& layer, Blob& top, bool fuse) {
        const bool ends = fuse && int8_fused_;
        const float* other = ends && layer.fused_sum ? layer.fused_other->data.read() : nullptr;
        const float* bias = bias_ ? layer.param(1) : nullptr;
        if (!layer.int8_bias.empty()) bias = corrected(layer, bias);
        (ends ? int8_fused_ : int8_)
            ->run(layer.bottoms[0]->data, layer.params[0]->data, bias, top, other);
        return ends;
    }

    // The bias with the layer's correction for eight bits.
    const float* corrected(const Layer& layer, const float* bias) {
        int8_bias_ = layer.int8_bias;
        int8_bias_.resize(static_cast<size_t>(outputs_));
        for (size_t o = 0; bias && o < int8_bias_.size(); ++o) int8_bias_[o] += bias[o];
        return int8_bias_.data();
    }

    // Weights are (outputs × inputs), or where `transpose` says so (inputs × outputs).
    void make_narrow(const Layer& layer) {
        const auto factors = layer.net->factors;
        make_packed(layer);
        if (layer.propagate[0])
            data_.reshape({rows_, outputs_}, {outputs_, inputs_, transpose_}, false, factors);
        if (!layer.learns[0]) return;
        const Matrix x = {rows_, inputs_}, dy = {rows_, outputs_};
        const Matrix first = transpose_ ? x : dy, second = transpose_ ? dy : x;
        gradient_.reshape({first.columns, rows_, true}, second, false, factors);
    }

    // Weights that change are packed on the way.
    void make_packed(const Layer& layer) {
        const Matrix weights = {inputs_, outputs_, !transpose_};
        plain_weights_ = describe(weights, dnnl::memory::data_type::f32);
        forward_.reshape({rows_, inputs_}, weights, bias_, layer.net->factors, keeps_);
        if (!keeps_ || !layer.fused_last || loses_nan(layer.fused_ending)) return;
        fused_.reshape({rows_, inputs_}, weights, bias_, layer.net->factors, true, end_of(layer));
    }

    dnnl::memory weights(const Layer& layer, const Product& product) const {
        return layer.params[0]->data.read(product.b(), rows_of(product.b()));
    }

    bool forward_packed(Layer& layer, Blob& top, bool fuse) {
        const bool ends = fuse && fused_.ends();
        Product& product = ends ? fused_ : forward_;
        const Tensor& from = layer.bottoms[0]->data;
        const dnnl::memory x = is_narrow(product.a()) && from.is_rounded()
                                   ? rounded_view_.of(product.a(), from.read_rounded())
                                   : from.read(product.a());
        const dnnl::memory weights = layer.params[0]->data.read(product.b(), plain_weights_);
        const float* bias = bias_ ? layer.param(1) : nullptr;
        const float* other = ends && layer.fused_sum ? layer.fused_other->data.read() : nullptr;
        if (top.rounded && keeps_ && (ends || !fuse))
            product.run(x, weights, top.data.write_rounded(), bias, other);
        else
            product.run(x, weights, top.data.write(), bias, other);
        return ends;
    }

    void backward_narrow(Layer& layer) {
        const Tensor &x = layer.bottoms[0]->data, &dy = layer.tops[0]->diff;
        if (layer.learns[0]) {
            const Tensor &first = transpose_ ? x : dy, &second = transpose_ ? dy : x;
            const auto a = first.read(gradient_.a(), rows_of(gradient_.a()));
            const auto b = second.read(gradient_.b());
            bool adds = true;
            float* sums = layer.param_diff(0, adds);
            if (adds)
                gradient_.add(a, b, sums);
            else
                gradient_.run(a, b, sums);
        }
        if (layer.propagate[0])
            data_.run(dy.read(data_.a()), weights(layer, data_), layer.bottom_diff());
    }

    // What is left of the product where a size is zero.
    void fill_bias(const float* bias, float* y) const {
        for (int64_t r = 0; r < rows_; ++r)
            for (int64_t o = 0; o < outputs_; ++o) y[r * outputs_ + o] = bias ? bias[o] : 0.0F;
    }

    // Up to 64 columns: rows are summed before the sum is added to what is there, so that
    // gradients of shared parameters that cancel do so to the last bit, as in Caffe.
    void add_rows(const float* dy, float* sums, int64_t first, int64_t end) const {
        const int64_t width = std::min<int64_t>(64, end - first);
        float part[64] = {};
        for (int64_t r = 0; r < rows_; ++r)
            for (int64_t o = 0; o < width; ++o) part[o] += dy[r * outputs_ + first + o];
        for (int64_t o = 0; o < width; ++o) sums[first + o] += part[o];
    }

    int64_t rows_ = 0, inputs_ = 0, outputs_ = 0;
    bool transpose_ = false, bias_ = false, narrow_ = false, normalize_ = false, few_ = false;
    // Whether weights stay as they are, and lie in the order that is fastest.
    bool keeps_ = false, packed_ = false;
    dnnl::memory::desc weights_, plain_weights_;
    dnnl::matmul product_;
    std::optional<TransposedProduct> turned_, turned_data_;
    Product forward_, fused_, data_, gradient_;
    View rounded_view_;
    Activation ending_;
    std::optional<Int8Product> int8_, int8_fused_;
    std::vector<float> int8_bias_;
};
}  // namespace

REGISTER_LAYER(InnerProduct, InnerProduct);

}  // namespace sn
