#include "int8_product.hpp"

#include "../int8.hpp"
#include "../pass.hpp"

namespace sn {

using dnnl::memory;

bool Int8Product::reshape(const Sizes& sizes, const Int8& x, const ProductEnd& end,
                          const std::optional<Int8>& y) {
    sizes_ = sizes, x_ = x, narrow_y_ = y;
    y_ = y ? y->desc : plain_desc({sizes.rows, sizes.outputs});
    bias_ = sizes.bias ? plain_desc({1, sizes.outputs}) : memory::desc();
    auto with = attributes();
    with.set_scales_mask(DNNL_ARG_SRC, 0);
    with.set_scales_mask(DNNL_ARG_WEIGHTS, 2);
    dnnl::post_ops after = post_ops_of(end, plain_desc({sizes.rows, sizes.outputs}));
    // oneDNN 3.2 has no fast kernel with a scale of the results.
    if (y) after.append_eltwise(dnnl::algorithm::eltwise_linear, 1 / y->step, 0);
    with.set_post_ops(after);
    const memory::desc weights({sizes.inputs, sizes.outputs}, memory::data_type::s8,
                               memory::format_tag::any);
    const bool chooses = after.len() > 0;
    description_ = {cpu(), x_.desc, weights, bias_, y_, with, chooses};
    if (chooses && (!description_ || is_slow(description_))) return false;
    primitive_ = dnnl::matmul(description_);
    with_ = with;
    rounding_ = {};
    may_round_ = !y;
    packed_ = description_.weights_desc();
    one_ = plain_desc({1}), each_ = plain_desc({sizes.outputs});
    pages_.reset();
    version_ = 0;
    return true;
}

memory Int8Product::packed(const Tensor& weights) {
    const uint64_t version = weights.storage().version();
    if (!pages_) pages_ = pages().take(packed_.get_size());
    const memory& made = packed_view_.of(packed_, pages_.get());
    if (version_ != 0 && version_ == version) return made;
    version_ = version;
    const float* rows = weights.read();
    const int64_t inputs = sizes_.inputs, outputs = sizes_.outputs;
    std::vector<float> turned;
    if (sizes_.transposed) {
        turned.resize(static_cast<size_t>(inputs * outputs));
        for (int64_t i = 0; i < inputs; ++i)
            for (int64_t o = 0; o < outputs; ++o)
                turned[static_cast<size_t>(o * inputs + i)] = rows[i * outputs + o];
        rows = turned.data();
    }
    const auto numbers = round_rows(rows, outputs, inputs, steps_);
    const memory::desc order({inputs, outputs}, memory::data_type::s8, memory::dims{1, inputs});
    pack_.run({order, cpu(), const_cast<int8_t*>(numbers.data())}, made);
    return made;
}

// False if there is no fast kernel for it.
bool Int8Product::make_rounding() {
    if (rounding_ || !may_round_) return may_round_;
    const memory::desc rounded(y_.get_dims(), memory::data_type::bf16, memory::format_tag::ab);
    const dnnl::matmul::primitive_desc made(cpu(), x_.desc, packed_, bias_, rounded, with_, true);
    may_round_ = made && !is_slow(made);
    if (may_round_) rounding_ = dnnl::matmul(made);
    return may_round_;
}

void Int8Product::run(const Tensor& x, const Tensor& weights, const float* bias, Blob& y,
                      const float* other) {
    const memory b = packed(weights), a = x.read(x_);
    const bool rounds = y.rounded && make_rounding();
    const auto target = [&]() -> memory {
        if (narrow_y_) return y.data.write(*narrow_y_);
        if (!rounds) return y_view_.of(y_, y.data.write());
        const memory::desc rounded(y_.get_dims(), memory::data_type::bf16, memory::format_tag::ab);
        return y_view_.of(rounded, y.data.write_rounded());
    };
    Arguments arguments = {
        {DNNL_ARG_SRC, a},
        {DNNL_ARG_WEIGHTS, b},
        {DNNL_ARG_DST, target()},
        {DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, x_step_.of(one_, &x_.step)},
        {DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, weight_steps_.of(each_, steps_.data())}};
    if (bias) arguments.add(DNNL_ARG_BIAS, bias_view_.of(bias_, bias));
    // The first operation behind the product.
    if (other)
        arguments.add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                      other_view_.of(plain_desc({sizes_.rows, sizes_.outputs}), other));
    sn::run(rounds ? rounding_ : primitive_, arguments);
}

}  // namespace sn
