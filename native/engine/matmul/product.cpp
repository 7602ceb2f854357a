#include "product.hpp"

#include <string>

#include "../instructions.hpp"

namespace sn {

using dnnl::memory;

memory::desc describe(const Matrix& matrix, memory::data_type type) {
    const memory::dims along = {matrix.columns, 1}, across = {1, matrix.rows};
    return {{matrix.rows, matrix.columns}, type, matrix.transposed ? across : along};
}

namespace {
// AMX reads float32 and rounds as it goes: no narrow copy of the weights is needed.
bool rounds_itself() {
    return has(dnnl::cpu_isa::avx512_core_amx);
}
}  // namespace

memory::desc rows_of(const memory::desc& factor) {
    return {factor.get_dims(), memory::data_type::f32, factor.get_strides()};
}

void Product::reshape(Matrix a, Matrix b, bool bias, memory::data_type factors, bool keeps_b,
                      const ProductEnd& end) {
    rounds_ = factors == memory::data_type::bf16 && rounds_itself() && !keeps_b;
    if (rounds_) factors = memory::data_type::f32;
    a_ = describe(a, factors), b_ = describe(b, factors);
    c_ = plain_desc({a.rows, b.columns});
    bias_ = bias ? plain_desc({1, b.columns}) : memory::desc();
    product_ = adding_ = rounding_ = {};
    ends_ = false;
    if (!keeps_b) return;
    keep({{b.rows, b.columns}, factors, memory::format_tag::any}, end);
}

dnnl::post_ops post_ops_of(const ProductEnd& end, const memory::desc& c) {
    dnnl::post_ops made;
    if (end.adds) made.append_binary(dnnl::algorithm::binary_add, c);
    if (end.function)
        made.append_eltwise(end.function->algorithm, end.function->alpha, end.function->beta);
    return made;
}

bool is_slow(const dnnl::matmul::primitive_desc& chosen) {
    return std::string(chosen.impl_info_str()).find("ref") == 0;
}

// A kernel that also computes the end, if there is a fast one.
void Product::keep(const memory::desc& b, const ProductEnd& end) {
    const dnnl::post_ops after = post_ops_of(end, c_);
    auto with = attributes();
    with.set_post_ops(after);
    ends_ = after.len() > 0;
    dnnl::matmul::primitive_desc chosen(cpu(), a_, b, bias_, c_, with, true);
    if (ends_ && (!chosen || is_slow(chosen))) {
        ends_ = false;
        chosen = {cpu(), a_, b, bias_, c_, attributes()};
    }
    end_ = ends_ ? end : ProductEnd{};
    b_ = chosen.weights_desc();
    product_ = dnnl::matmul(chosen);
}

dnnl::matmul Product::make(bool adds) const {
    auto with = attributes();
    if (rounds_) with.set_fpmath_mode(dnnl::fpmath_mode::bf16);
    if (adds) {
        dnnl::post_ops sum;
        sum.append_sum(1.0F);
        with.set_post_ops(sum);
    }
    return dnnl::matmul(dnnl::matmul::primitive_desc(cpu(), a_, b_, bias_, c_, with));
}

dnnl::matmul Product::make_rounding() const {
    auto with = attributes();
    with.set_post_ops(post_ops_of(end_, c_));
    const memory::desc rounded(c_.get_dims(), memory::data_type::bf16, memory::format_tag::ab);
    return dnnl::matmul(dnnl::matmul::primitive_desc(cpu(), a_, b_, bias_, rounded, with));
}

void Product::run(const memory& a, const memory& b, float* c, const float* bias,
                  const float* other) {
    if (!product_) product_ = make(false);
    run(product_, a, b, c_view_.of(c_, c), bias, other);
}

void Product::run(const memory& a, const memory& b, uint16_t* c, const float* bias,
                  const float* other) {
    if (!rounding_) rounding_ = make_rounding();
    const memory::desc rounded(c_.get_dims(), memory::data_type::bf16, memory::format_tag::ab);
    run(rounding_, a, b, rounded_view_.of(rounded, c), bias, other);
}

void Product::run(const dnnl::matmul& product, const memory& a, const memory& b, const memory& c,
                  const float* bias, const float* other) {
    Arguments arguments = {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}};
    if (bias) arguments.add(DNNL_ARG_BIAS, bias_view_.of(bias_, bias));
    // The first operation behind the product.
    if (other)
        arguments.add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                      other_view_.of(c_, other));
    sn::run(product, arguments);
}

void Product::add(const memory& a, const memory& b, float* c) {
    if (!adding_) adding_ = make(true);
    sn::run(adding_, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c_view_.of(c_, c)}});
}

}  // namespace sn
