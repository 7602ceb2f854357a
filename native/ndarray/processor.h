/* Which of the loops that are compiled for several instruction sets this processor can run. */
#ifndef SPARKNET_PROCESSOR_H
#define SPARKNET_PROCESSOR_H

#include <stdbool.h>

static inline bool sn_is_skylake(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
#else
    return false;
#endif
}

static inline bool sn_is_haswell(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
#else
    return false;
#endif
}

/* The best of the three for this processor; other architectures have only the first. */
#if defined(__x86_64__)
#define SN_BEST(baseline, haswell, skylake) \
    (sn_is_skylake() ? (skylake) : sn_is_haswell() ? (haswell) : (baseline))
#else
#define SN_BEST(baseline, haswell, skylake) (baseline)
#endif

#endif
