/*
 * The engine: its versions, its threads, and how fast it computes on this machine.
 */
#ifndef SPARKNET_ENGINE_H
#define SPARKNET_ENGINE_H

#include <sparknet/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this library, such as "0.2.0". */
SN_API const char* sn_version(void);

/* The version of the oneDNN that is loaded, as three numbers: 3, 2, 0. */
SN_API void sn_onednn_version(int* major, int* minor, int* patch);

/* Whether the processor, and oneDNN on it, multiplies numbers of bfloat16: 1, else 0. */
SN_API int sn_has_bf16(void);

/* 1 if the processor multiplies numbers of eight bits and adds them up (VNNI, AMX), else 0. */
SN_API int sn_has_int8(void);

/*
 * The newest instructions that oneDNN uses here, such as "AVX-512"; "" where it does not say.
 *
 * ONEDNN_MAX_CPU_ISA in the environment can keep it to older ones.
 */
SN_API const char* sn_onednn_isa(void);

/*
 * Sets how many threads a call may use, at least 1, for the whole process.
 *
 * At first it is what OpenMP would take: OMP_NUM_THREADS, else the processors
 * this process may run on. Our own sums do not depend on it: they add blocks of a fixed
 * size in a fixed order. oneDNN's may depend on it, in the last bits: it divides a batch
 * among the threads and adds up their results.
 */
SN_API sn_status sn_set_threads(int count);

/*
 * How many threads a call may use now.
 *
 * It is 1 in a child process that was forked after threads had worked, since they do
 * not survive the fork. A child forked before that has them all.
 */
SN_API int sn_threads(void);

/*
 * The speed of this machine with the threads that a call may use: the best of several
 * short runs. The first is in float32 operations a second, measured by products of large
 * square matrices; the second in operations that multiply bfloat16 and add float32, and 0
 * where sn_has_bf16() is 0; the third in bytes a second, by a = b + s c over arrays of 128 MiB.
 */
SN_API sn_status sn_measure_arithmetic(double* operations);
SN_API sn_status sn_measure_bf16(double* operations);
SN_API sn_status sn_measure_memory(double* bytes);

#ifdef __cplusplus
}
#endif

#endif
