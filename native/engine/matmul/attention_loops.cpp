#include "attention_loops.hpp"

#include "../../ndarray/processor.h"
#include "../instructions.hpp"

namespace sn {

const AttentionLoops* attention_loops(AttentionNumbers numbers) {
#if defined(__x86_64__)
#if defined(SPARKNET_AMX)
    if (numbers == AttentionNumbers::int8 && has_avx512_vnni()) return &attention_bytes;
    if (numbers != AttentionNumbers::float32 && has_avx512_bf16()) return &attention_narrow;
#endif
    if (has_avx512() && sn_is_skylake()) return &attention_skylake;
    if (has_avx2() && sn_is_haswell()) return &attention_haswell;
#endif
    static_cast<void>(numbers);
    return nullptr;
}

}  // namespace sn
