// Loops over many values: chunks for threads, each chunk a plain loop that the compiler vectorises.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

extern "C" {
#include "../ndarray/kernel.h"
}

namespace sn {

// Threads that a parallel region may use now (one in a child that forked after threads ran).
int threads();

// The loop of one thread, in a function of its own and on its own copy of what it captured:
// inside a parallel region the compiler leaves loops scalar.
template <class F>
SN_KERNEL __attribute__((noinline)) void run_part(F body, int64_t begin, int64_t end) {
    body(begin, end);
}

// body(begin, end) over [0, n) in at most threads() chunks; small loops stay on this thread.
// `cost` is about how many plain float operations one step is worth.
template <class F>
void parallel(int64_t n, int64_t cost, F&& body) {
    constexpr int64_t enough = 32768;
    const int64_t parts = std::min<int64_t>(threads(), std::max<int64_t>(1, n * cost / enough));
    if (parts <= 1) {
        if (n > 0) run_part<std::decay_t<F>>(body, 0, n);
        return;
    }
#pragma omp parallel num_threads(static_cast<int>(parts))
    {
        const int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
        const int64_t begin = n * me / team, end = n * (me + 1) / team;
        if (begin < end) run_part<std::decay_t<F>>(body, begin, end);
    }
}

template <class F>
void parallel(int64_t n, F&& body) {
    parallel(n, 1, body);
}

// step(i) for every i of [0, n), each thread a chunk of them.
template <class F>
void parallel_each(int64_t n, int64_t cost, F step) {
    parallel(n, cost, [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
        for (int64_t i = begin; i < end; ++i) step(i);
    });
}
template <class F>
void parallel_each(int64_t n, F step) {
    parallel_each(n, 1, step);
}

inline void clear(float* values, int64_t n) {
    parallel(n, [=](int64_t begin, int64_t end) { std::fill(values + begin, values + end, 0.0F); });
}

// Sums in fixed blocks: the result does not depend on the number of threads.
template <class F>
double parallel_sum(int64_t n, int64_t cost, F&& term) {
    constexpr int64_t block = 4096;
    const int64_t blocks = (n + block - 1) / block;
    if (blocks <= 1) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += term(i);
        return sum;
    }
    std::vector<double> sums(static_cast<size_t>(blocks));
    parallel_each(blocks, block * cost, [&](int64_t b) {
        double sum = 0;
        const int64_t stop = std::min(n, (b + 1) * block);
        for (int64_t i = b * block; i < stop; ++i) sum += term(i);
        sums[static_cast<size_t>(b)] = sum;
    });
    double total = 0;
    for (double sum : sums) total += sum;
    return total;
}

}  // namespace sn
