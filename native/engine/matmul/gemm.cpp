#include "gemm.hpp"

#include <oneapi/dnnl/dnnl.h>

#include <stdexcept>

namespace sn {

void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
          const float* a, const float* b, float beta, float* c) {
    if (m == 0 || n == 0) return;
    if (k == 0) {
        for (int64_t i = 0; i < m * n; ++i) c[i] = beta == 0.0F ? 0.0F : beta * c[i];
        return;
    }
    const auto status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha,
                                   a, transpose_a ? m : k, b, transpose_b ? k : n, beta, c, n);
    if (status != dnnl_success) throw std::runtime_error("matrix product failed");
}

}  // namespace sn
