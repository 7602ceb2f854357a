#include "int8_product.hpp"

#include "../int8.hpp"
#include "../pass.hpp"

namespace sn {

using dnnl::memory;

void Int8Product::reshape(int64_t rows, int64_t inputs, int64_t outputs, bool transposed, bool bias,
                          const Int8& x) {
    inputs_ = inputs, outputs_ = outputs, transposed_ = transposed, x_ = x;
    y_ = plain_desc({rows, outputs});
    bias_ = bias ? plain_desc({1, outputs}) : memory::desc();
    auto with = attributes();
    with.set_scales_mask(DNNL_ARG_SRC, 0);
    with.set_scales_mask(DNNL_ARG_WEIGHTS, 2);
    const memory::desc weights({inputs, outputs}, memory::data_type::s8, memory::format_tag::any);
    description_ = {cpu(), x_.desc, weights, bias_, y_, with};
    primitive_ = dnnl::matmul(description_);
    packed_ = description_.weights_desc();
    one_ = plain_desc({1}), each_ = plain_desc({outputs});
    pages_.reset();
    version_ = 0;
}

memory Int8Product::packed(const Tensor& weights) {
    const uint64_t version = weights.storage().version();
    if (!pages_) pages_ = pages().take(packed_.get_size());
    const memory& made = packed_view_.of(packed_, pages_.get());
    if (version_ != 0 && version_ == version) return made;
    version_ = version;
    const float* rows = weights.read();
    std::vector<float> turned;
    if (transposed_) {
        turned.resize(static_cast<size_t>(inputs_ * outputs_));
        for (int64_t i = 0; i < inputs_; ++i)
            for (int64_t o = 0; o < outputs_; ++o)
                turned[static_cast<size_t>(o * inputs_ + i)] = rows[i * outputs_ + o];
        rows = turned.data();
    }
    const auto numbers = round_rows(rows, outputs_, inputs_, steps_);
    const memory::desc order({inputs_, outputs_}, memory::data_type::s8, memory::dims{1, inputs_});
    pack_.run({order, cpu(), const_cast<int8_t*>(numbers.data())}, made);
    return made;
}

void Int8Product::run(const Tensor& x, const Tensor& weights, const float* bias, float* y) {
    const memory b = packed(weights), a = x.read(x_);
    Arguments arguments = {
        {DNNL_ARG_SRC, a},
        {DNNL_ARG_WEIGHTS, b},
        {DNNL_ARG_DST, y_view_.of(y_, y)},
        {DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, x_step_.of(one_, &x_.step)},
        {DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, weight_steps_.of(each_, steps_.data())}};
    if (bias) arguments.add(DNNL_ARG_BIAS, bias_view_.of(bias_, bias));
    sn::run(primitive_, arguments);
}

}  // namespace sn
