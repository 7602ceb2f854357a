// Row-major matrix products.
#pragma once

#include <cstdint>

namespace sn {

// C (m × n) = alpha · op(A) (m × k) · op(B) (k × n) + beta · C; rows are dense.
void gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
          const float* a, const float* b, float beta, float* c);

}  // namespace sn
