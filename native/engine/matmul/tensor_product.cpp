#include "tensor_product.hpp"

#include "gemm.hpp"

namespace sn {

using dnnl::memory;

void TensorProduct::reshape(Matrix a, Matrix b, memory::data_type factors) {
    a_ = a, b_ = b;
    const bool empty = a.rows == 0 || a.columns == 0 || b.columns == 0;
    narrow_ = factors != memory::data_type::f32 && !empty;
    if (narrow_) product_.reshape(a, b, false, factors);
}

void TensorProduct::run(const Tensor& a, const Tensor& b, float* c, bool adds) {
    if (!narrow_)
        return gemm(a_.transposed, b_.transposed, a_.rows, b_.columns, a_.columns, 1, a.read(),
                    b.read(), adds ? 1.0F : 0.0F, c);
    const auto first = a.read(product_.a(), rows_of(product_.a()));
    const auto second = b.read(product_.b(), rows_of(product_.b()));
    adds ? product_.add(first, second, c) : product_.run(first, second, c);
}

void StepProduct::reshape(int64_t rows, Matrix b, bool adds, memory::data_type factors) {
    product_ = {}, a_ = {}, few_.reset();
    if (rows == 0 || b.rows == 0 || b.columns == 0) return;
    rows_ = plain_desc({rows, b.rows}), c_ = plain_desc({rows, b.columns});
    b_rows_ = describe(b, memory::data_type::f32);
    if (factors == memory::data_type::f32 && rows <= PackedRows::most_rows) {
        few_ = {rows, b.columns, b.rows, adds};
        b_desc_ = {{b.rows, b.columns}, factors, memory::format_tag::BA16a64b};
        return;
    }
    auto with = attributes();
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    if (adds) with.set_post_ops(sum);
    const dnnl::matmul::primitive_desc made(
        cpu(), describe({rows, b.rows}, factors),
        memory::desc({b.rows, b.columns}, factors, memory::format_tag::any), c_, with);
    a_desc_ = made.src_desc(), b_desc_ = made.weights_desc();
    if (a_desc_ != rows_) a_ = memory(a_desc_, cpu());
    from_ = memory(rows_, cpu(), nullptr), to_ = memory(c_, cpu(), nullptr);
    product_ = dnnl::matmul(made);
}

void StepProduct::pack(const Tensor& b) {
    if (few_ || product_) b_ = b.read(b_desc_, b_rows_);
}

void StepProduct::run(const float* a, float* c) {
    if (few_) return few_->run(a, static_cast<const float*>(b_.get_data_handle()), c);
    if (!product_) return;
    from_.set_data_handle(const_cast<float*>(a));
    to_.set_data_handle(c);
    if (a_) round_.run(from_, a_);
    sn::run(product_,
            {{DNNL_ARG_SRC, a_ ? a_ : from_}, {DNNL_ARG_WEIGHTS, b_}, {DNNL_ARG_DST, to_}});
}

}  // namespace sn
