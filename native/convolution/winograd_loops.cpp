#include "winograd_loops.hpp"

#include "../ndarray/processor.h"

namespace sn {

const WinogradLoops* winograd_loops() {
#if defined(SPARKNET_ONEDNN)
    return SN_BEST(nullptr, &winograd_haswell, &winograd_skylake);
#else
    return nullptr;  // as on other processors, for which builds without oneDNN are
#endif
}

}  // namespace sn
