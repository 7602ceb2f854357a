// Functions of single values, and what follows a primitive's sums.
#pragma once

#include "oneapi/dnnl/dnnl.hpp"

namespace dnnl {

void apply(const post_ops::Op& function, const float* from, float* to, int64_t count);

// Whether a primitive starts from the values that its target has.
bool adds(const primitive_attr& with);
// The operations behind that: on `count` values, beginning at `at` of the target.
void finish(const primitive_attr& with, const Operands& operands, float* values, int64_t at,
            int64_t count);

}  // namespace dnnl
