// Matrix products of fixed sizes whose factors may be rounded to bfloat16; sums are float32.
#pragma once

#include <optional>

#include "../layer.hpp"
#include "../primitive.hpp"

namespace sn {

// A matrix of rows without gaps, or its transpose.
struct Matrix {
    int64_t rows, columns;
    bool transposed = false;
};

dnnl::memory::desc describe(const Matrix& matrix, dnnl::memory::data_type type);

// What follows a product: the sum with another matrix, and a function of each value.
struct ProductEnd {
    bool adds = false;
    std::optional<Ending> function;
};

// The same for oneDNN; the other matrix is described by `c`.
dnnl::post_ops post_ops_of(const ProductEnd& end, const dnnl::memory::desc& c);
// Whether a kernel is oneDNN's reference.
bool is_slow(const dnnl::matmul::primitive_desc& chosen);

// C = A B, or C += A B; with a bias of one value a column where one is given.
class Product {
   public:
    // `keeps_b`: the caller keeps the second factor from run to run, in the layout that b() names.
    // `end`: what run() may compute as well; ends() says whether it does.
    void reshape(Matrix a, Matrix b, bool bias, dnnl::memory::data_type factors,
                 bool keeps_b = false, const ProductEnd& end = {});
    bool ends() const { return ends_; }

    // What the factors are handed over in: float32 where the processor rounds on the way.
    const dnnl::memory::desc& a() const { return a_; }
    const dnnl::memory::desc& b() const { return b_; }
    void run(const dnnl::memory& a, const dnnl::memory& b, float* c, const float* bias = nullptr,
             const float* other = nullptr);
    // The same, rounded to bfloat16, where the second factor is kept.
    void run(const dnnl::memory& a, const dnnl::memory& b, uint16_t* c, const float* bias,
             const float* other);
    void add(const dnnl::memory& a, const dnnl::memory& b, float* c);

   private:
    dnnl::matmul make(bool adds) const;
    dnnl::matmul make_rounding() const;
    void keep(const dnnl::memory::desc& b, const ProductEnd& end);
    void run(const dnnl::matmul& product, const dnnl::memory& a, const dnnl::memory& b,
             const dnnl::memory& c, const float* bias, const float* other);

    dnnl::memory::desc a_, b_, c_, bias_;
    View c_view_, rounded_view_, bias_view_, other_view_;
    bool rounds_ = false, ends_ = false;
    // What a kept product computes as well.
    ProductEnd end_;
    dnnl::matmul product_, adding_, rounding_;
};

// The same values in float32, as rows hold them.
dnnl::memory::desc rows_of(const dnnl::memory::desc& factor);

}  // namespace sn
