#include <sparknet/engine.h>

#if defined(SPARKNET_ONEDNN)
#include <oneapi/dnnl/dnnl.h>
#endif

const char* sn_version(void) {
    return SPARKNET_VERSION;
}

#if defined(SPARKNET_ONEDNN)
void sn_onednn_version(int* major, int* minor, int* patch) {
    const dnnl_version_t* version = dnnl_version();
    *major = version->major;
    *minor = version->minor;
    *patch = version->patch;
}

const char* sn_onednn_isa(void) {
    static const struct {
        dnnl_cpu_isa_t isa;
        const char* name;
    } names[] = {
        {dnnl_cpu_isa_sse41, "SSE4.1"},
        {dnnl_cpu_isa_avx, "AVX"},
        {dnnl_cpu_isa_avx2, "AVX2"},
        {dnnl_cpu_isa_avx2_vnni, "AVX2 VNNI"},
        {dnnl_cpu_isa_avx2_vnni_2, "AVX2 VNNI 2"},
        {dnnl_cpu_isa_avx512_core, "AVX-512"},
        {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 VNNI"},
        {dnnl_cpu_isa_avx512_core_bf16, "AVX-512 BF16"},
        {dnnl_cpu_isa_avx512_core_fp16, "AVX-512 FP16"},
        {dnnl_cpu_isa_avx512_core_amx, "AMX"},
        {dnnl_cpu_isa_avx512_core_amx_fp16, "AMX FP16"},
    };
    const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    for (const auto& one : names) {
        if (one.isa == isa) {
            return one.name;
        }
    }
    return "";
}
#else
// A build without oneDNN.
void sn_onednn_version(int* major, int* minor, int* patch) {
    *major = *minor = *patch = 0;
}

const char* sn_onednn_isa(void) {
    return "";
}
#endif
