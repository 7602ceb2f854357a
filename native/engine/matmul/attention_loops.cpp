#include "attention_loops.hpp"

#include "../../ndarray/processor.h"
#include "../instructions.hpp"

namespace sn {

const AttentionLoops* attention_loops(bool narrow) {
#if defined(__x86_64__)
#if defined(SPARKNET_AMX)
    if (narrow && has_avx512_bf16()) return &attention_narrow;
#endif
    if (has_avx512() && sn_is_skylake()) return &attention_skylake;
    if (has_avx2() && sn_is_haswell()) return &attention_haswell;
#endif
    static_cast<void>(narrow);
    return nullptr;
}

}  // namespace sn
