/* How the innermost loops are compiled. */
#ifndef SPARKNET_KERNEL_H
#define SPARKNET_KERNEL_H

/*
 * SN_KERNEL: compiled for several instruction sets, the best of which is chosen at run time;
 * SPARKNET_SETS names the newer ones (cmake/Flags.cmake).
 * They are named by their features: with a processor's name, as in "arch=haswell", GCC 12 chooses
 * them on exactly that processor.  Sanitizers do not support the resolvers that this needs.
 */
#if defined(SPARKNET_SETS)
#define SN_KERNEL __attribute__((target_clones("default", SPARKNET_SETS)))
#else
#define SN_KERNEL
#endif

/* The iterations that follow do not depend on each other. */
#define SN_EACH(i, n) _Pragma("omp simd") for (int64_t i = 0; i < (n); ++i)

#endif
