#include "sums.h"

#include "processor.h"

const sn_sum_kernels* sn_sums(void) {
    return SN_BEST(&sn_sums_baseline, &sn_sums_haswell, &sn_sums_skylake);
}
