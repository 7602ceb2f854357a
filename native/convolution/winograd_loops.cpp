#include "winograd_loops.hpp"

#include "../ndarray/processor.h"

namespace sn {

const WinogradLoops* winograd_loops() {
    return SN_BEST(nullptr, &winograd_haswell, &winograd_skylake);
}

}  // namespace sn
