#include "instructions.hpp"

namespace sn {

bool has(dnnl::cpu_isa wanted) {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto all = static_cast<unsigned>(wanted);
    return (isa & all) == all;
}

bool has_bf16() {
    return has(dnnl::cpu_isa::avx512_core_bf16);
}

bool has_int8() {
    return has(dnnl::cpu_isa::avx512_core_vnni) || has(dnnl::cpu_isa::avx2_vnni);
}

bool has_avx2() {
    return has(dnnl::cpu_isa::avx2);
}

bool has_avx512() {
    return has(dnnl::cpu_isa::avx512_core);
}

bool has_amx() {
#if defined(SPARKNET_AMX)
    return has(dnnl::cpu_isa::avx512_core_amx);
#else
    return false;
#endif
}

bool has_avx512_bf16() {
#if defined(SPARKNET_AMX)
    return has(dnnl::cpu_isa::avx512_core_bf16);
#else
    return false;
#endif
}

bool has_avx512_vnni() {
#if defined(SPARKNET_AMX)
    return has(dnnl::cpu_isa::avx512_core_vnni) && __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

bool has_avx512_bytes() {
#if defined(SPARKNET_AMX)
    return has_avx512_bf16() && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512vbmi");
#else
    return false;
#endif
}

}  // namespace sn
