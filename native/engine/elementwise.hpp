// Value-by-value kernels that stay in whatever layout their input has.
#pragma once

#include "parallel.hpp"
#include "tensor.hpp"

namespace sn {

// The layout to walk `lead` in.  A blocked layout may carry padding, which oneDNN
// needs to stay zero: only functions with f(0, …) = 0 may walk over it.
inline dnnl::memory::desc walk(const Tensor& lead, bool keeps_zero) {
    const auto desc = lead.layout();
    const bool padded = desc.get_size() != static_cast<size_t>(lead.count()) * sizeof(float);
    return padded && !keeps_zero ? lead.plain() : desc;
}

inline int64_t values(const dnnl::memory::desc& desc) {
    return static_cast<int64_t>(desc.get_size() / sizeof(float));
}

inline float* floats(const dnnl::memory& memory) {
    return static_cast<float*>(memory.get_data_handle());
}

// out[i] = f(a[i])
template <class F>
void map(const Tensor& a, Tensor& out, bool keeps_zero, F f, int64_t cost = 1) {
    const auto desc = walk(a, keeps_zero);
    const auto in = a.read(desc);
    const auto to = out.write(desc);
    const float* x = floats(in);
    float* y = floats(to);
    parallel(
        values(desc),
        [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
        },
        cost);
}

// out[i] = f(a[i], b[i]); walks in the layout of a.
template <class F>
void map(const Tensor& a, const Tensor& b, Tensor& out, bool keeps_zero, F f, int64_t cost = 1) {
    const auto desc = walk(a, keeps_zero);
    const auto first = a.read(desc), second = b.read(desc);
    const auto to = out.write(desc);
    const float *x = floats(first), *z = floats(second);
    float* y = floats(to);
    parallel(
        values(desc),
        [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) y[i] = f(x[i], z[i]);
        },
        cost);
}

// out[i] = f(a[i], b[i], c[i]); walks in the layout of a.
template <class F>
void map(const Tensor& a, const Tensor& b, const Tensor& c, Tensor& out, bool keeps_zero, F f,
         int64_t cost = 1) {
    const auto desc = walk(a, keeps_zero);
    const auto first = a.read(desc), second = b.read(desc), third = c.read(desc);
    const auto to = out.write(desc);
    const float *x = floats(first), *z = floats(second), *w = floats(third);
    float* y = floats(to);
    parallel(
        values(desc),
        [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) y[i] = f(x[i], z[i], w[i]);
        },
        cost);
}

}  // namespace sn
