// Instructions that the processor has and, for narrow numbers, the compiler knows.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace sn {

// Whether oneDNN may use all of these instructions: the processor has them, and no setting forbids
// them.
bool has(dnnl::cpu_isa wanted);
// Products of bfloat16, and of eight bits, that are faster than those of float32.
bool has_bf16();
bool has_int8();
// Vectors of 256 bits, of whole numbers too.
bool has_avx2();
// Vectors of 512 bits.
bool has_avx512();
// Products of tiles of bfloat16 and of eight bits.
bool has_amx();
// Products of pairs of bfloat16 in vectors of 512 bits.
bool has_avx512_bf16();
// Products of four bytes in vectors of 512 bits.
bool has_avx512_vnni();
// The last two, and bytes in any order.
bool has_avx512_bytes();

}  // namespace sn
