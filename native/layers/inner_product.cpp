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

    void reshape(Layer& layer) override {
        const auto axis = static_cast<size_t>(layer.options.integer("axis"));
        rows_ = count(layer.shape(), 0, axis);
        inputs_ = count(layer.shape(), axis, layer.shape().size());
        outputs_ = layer.options.integer("num_output");
        transpose_ = layer.options.flag("transpose");
        bias_ = layer.options.flag("bias_term");
        normalize_ = layer.options.flag("normalize", false);
        product_ = {};
        few_ = false;
        turned_.reset(), turned_data_.reset();
        const bool empty = rows_ == 0 || inputs_ == 0 || outputs_ == 0;
        int8_.reset();
        const bool tests = !layer.has_gradients();
        // With so few weights a product takes no longer than rounding its values.
        constexpr int64_t little = 1 << 13;
        narrow_ = layer.net->narrow() && !empty && !(tests && inputs_ * outputs_ <= little);
        if (layer.int8 && tests && !normalize_ && !empty && layer.bottoms[0]->step > 0)
            make_int8(layer);
        else if (narrow_)
            make_narrow(layer);
        else if (!empty)
            make_products(layer);
    }

    void forward(Layer& layer) override {
        if (normalize_) normalize_rows(layer);
        if (int8_)
            return int8_->run(layer.bottoms[0]->data, layer.params[0]->data,
                              bias_ ? layer.param(1) : nullptr, layer.top());
        if (narrow_) return forward_narrow(layer);
        if (turned_)
            return turned_->run(layer.param(0), layer.bottom(), bias_ ? layer.param(1) : nullptr,
                                layer.top());
        if (few_)
            return multiply_few_rows(rows_, outputs_, inputs_, layer.bottom(), layer.param(0),
                                     bias_ ? layer.param(1) : nullptr, layer.top());
        if (!product_) return fill_bias(layer);
        Arguments arguments = {
            {DNNL_ARG_SRC,
             {plain_desc({rows_, inputs_}), cpu(), const_cast<float*>(layer.bottom())}},
            {DNNL_ARG_WEIGHTS, {weights_, cpu(), const_cast<float*>(layer.param(0))}},
            {DNNL_ARG_DST, {plain_desc({rows_, outputs_}), cpu(), layer.top()}}};
        if (bias_)
            arguments.add(DNNL_ARG_BIAS, dnnl::memory(plain_desc({1, outputs_}), cpu(),
                                                      const_cast<float*>(layer.param(1))));
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
            parallel(
                outputs_,
                [&](int64_t begin, int64_t end) {
                    for (int64_t o = begin; o < end; o += 64) add_rows(dy, sums, o, end);
                },
                rows_);
        }
        if (!layer.propagate[0] || narrow_) return;
        if (turned_data_)
            turned_data_->run(layer.param(0), dy, nullptr, layer.bottom_diff());
        else
            gemm(false, transpose_, rows_, inputs_, outputs_, 1, dy, layer.param(0), 0,
                 layer.bottom_diff());
    }

    bool looks_back(const Layer& layer, const Blob& blob) const override {
        return layer.learns[0] && &blob == layer.bottoms[0];
    }

   private:
    // happynear's fork: each row of the weights gets length 1, in the parameter itself.
    void normalize_rows(const Layer& layer) const {
        float* weights = layer.params[0]->data.edit();
        const int64_t width = inputs_;
        parallel(
            outputs_,
            [=](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                    float* row = weights + r * width;
                    double squares = 1e-6;
                    for (int64_t i = 0; i < width; ++i)
                        squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
                    const auto by = static_cast<float>(1.0 / std::sqrt(squares));
                    for (int64_t i = 0; i < width; ++i) row[i] *= by;
                }
            },
            width * 3);
    }

    void make_products(const Layer& layer) {
        few_ = rows_ <= few_rows && !transpose_;
        if (few_) return;
        const bool few =
            TransposedProduct::fewest <= rows_ && rows_ <= TransposedProduct::most && !transpose_;
        if (few)
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
        int8_.emplace().reshape(rows_, inputs_, outputs_, transpose_, bias_, x);
    }

    // Weights are (outputs × inputs), or where `transpose` says so (inputs × outputs).
    void make_narrow(const Layer& layer) {
        const auto factors = layer.net->factors;
        // Weights that change are packed on the way.
        const Matrix weights = {inputs_, outputs_, !transpose_};
        plain_weights_ = describe(weights, dnnl::memory::data_type::f32);
        const bool keeps = !layer.has_gradients() && layer.params[0]->data.storage().version() != 0;
        forward_.reshape({rows_, inputs_}, weights, bias_, factors, keeps);
        if (layer.propagate[0])
            data_.reshape({rows_, outputs_}, {outputs_, inputs_, transpose_}, false, factors);
        if (!layer.learns[0]) return;
        const Matrix x = {rows_, inputs_}, dy = {rows_, outputs_};
        const Matrix first = transpose_ ? x : dy, second = transpose_ ? dy : x;
        gradient_.reshape({first.columns, rows_, true}, second, false, factors);
    }

    dnnl::memory weights(const Layer& layer, const Product& product) const {
        return layer.params[0]->data.read(product.b(), rows_of(product.b()));
    }

    void forward_narrow(Layer& layer) {
        forward_.run(layer.bottoms[0]->data.read(forward_.a()),
                     layer.params[0]->data.read(forward_.b(), plain_weights_), layer.top(),
                     bias_ ? layer.param(1) : nullptr);
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
    void fill_bias(Layer& layer) const {
        float* y = layer.top();
        for (int64_t r = 0; r < rows_; ++r)
            for (int64_t o = 0; o < outputs_; ++o)
                y[r * outputs_ + o] = bias_ ? layer.param(1)[o] : 0.0F;
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
    dnnl::memory::desc weights_, plain_weights_;
    dnnl::matmul product_;
    std::optional<TransposedProduct> turned_, turned_data_;
    Product forward_, data_, gradient_;
    std::optional<Int8Product> int8_;
};
}  // namespace

std::unique_ptr<Kernel> make_inner_product() {
    return make<InnerProduct>();
}

}  // namespace sn
