#include "tiles.hpp"

#include <oneapi/dnnl/dnnl.hpp>

namespace sn {

bool has_amx() {
#if defined(SPARKNET_AMX)
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto amx = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx);
    return (isa & amx) == amx;
#else
    return false;
#endif
}

}  // namespace sn
