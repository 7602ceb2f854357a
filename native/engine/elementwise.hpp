// Value-by-value kernels that stay in whatever layout and type their input has.
#pragma once

#include "bfloat16.hpp"
#include "parallel.hpp"
#include "tensor.hpp"

namespace sn {

// The values in memory, with those that fill up a layout.
inline int64_t values(const dnnl::memory::desc& desc) {
    return static_cast<int64_t>(desc.get_size() /
                                (is_narrow(desc) ? sizeof(BFloat16) : sizeof(float)));
}

// The layout to walk `lead` in.  A blocked layout may carry padding, which oneDNN
// needs to stay zero: only functions with f(0, …) = 0 may walk over it.
inline dnnl::memory::desc walk(const Tensor& lead, bool keeps_zero) {
    const auto desc = lead.newest();
    return values(desc) != lead.count() && !keeps_zero ? lead.plain() : desc;
}

// The layout to walk several tensors of one shape in: the first that is not plain rows; in bfloat16
// if all of them are.
inline dnnl::memory::desc walk(const std::vector<const Tensor*>& all, bool keeps_zero) {
    dnnl::memory::desc found = all[0]->plain();
    bool narrow = true;
    for (const Tensor* one : all) {
        const auto desc = walk(*one, keeps_zero);
        narrow = narrow && is_narrow(desc);
        if (is_plain(found)) found = desc;
    }
    return narrow ? found : retyped(found, dnnl::memory::data_type::f32);
}

inline float* floats(const dnnl::memory& memory) {
    return values_of<float>(memory);
}

// out[i] = f(a[i])
template <class F>
void map(const Tensor& a, Tensor& out, bool keeps_zero, F f, int64_t cost = 1) {
    const auto desc = walk(a, keeps_zero);
    const auto in = a.read(desc);
    const auto to = out.write(desc);
    typed(desc, [&](auto type) {
        using T = decltype(type);
        const T* x = values_of<T>(in);
        T* y = values_of<T>(to);
        parallel(values(desc), cost, [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) y[i] = f(x[i]);
        });
    });
}

// out[i] = f(a[i], b[i]); walks in the layout of a.
template <class F>
void map(const Tensor& a, const Tensor& b, Tensor& out, bool keeps_zero, F f, int64_t cost = 1) {
    const auto desc = walk(a, keeps_zero);
    const auto first = a.read(desc), second = b.read(desc);
    const auto to = out.write(desc);
    typed(desc, [&](auto type) {
        using T = decltype(type);
        const T *x = values_of<T>(first), *z = values_of<T>(second);
        T* y = values_of<T>(to);
        parallel(values(desc), cost, [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) y[i] = f(x[i], z[i]);
        });
    });
}

// out[i] = f(a[i], b[i], c[i]); walks in the layout of a.
template <class F>
void map(const Tensor& a, const Tensor& b, const Tensor& c, Tensor& out, bool keeps_zero, F f,
         int64_t cost = 1) {
    const auto desc = walk(a, keeps_zero);
    const auto first = a.read(desc), second = b.read(desc), third = c.read(desc);
    const auto to = out.write(desc);
    typed(desc, [&](auto type) {
        using T = decltype(type);
        const T *x = values_of<T>(first), *z = values_of<T>(second), *w = values_of<T>(third);
        T* y = values_of<T>(to);
        parallel(values(desc), cost, [=](int64_t begin, int64_t end) {
#pragma omp simd
            for (int64_t i = begin; i < end; ++i) y[i] = f(x[i], z[i], w[i]);
        });
    });
}

// to[i] = end(c[0] x[0][i] + c[1] x[1][i] + …, i) from `begin` to `stop`, for `many` terms.
template <class T, class End>
SN_KERNEL void add_up_part(const T* const* x, const float* c, size_t many, T* to, int64_t begin,
                           int64_t stop, End end) {
    constexpr int64_t most = 512;
    float sums[most];
    for (int64_t at = begin; at < stop; at += most) {
        const int64_t here = std::min(most, stop - at);
        const T *a = x[0] + at, *b = x[1] + at;
        const float p = c[0], q = c[1];
        SN_EACH(i, here) sums[i] = p * a[i] + q * b[i];
        for (size_t k = 2; k < many; ++k) {
            const T* term = x[k] + at;
            const float factor = c[k];
            SN_EACH(i, here) sums[i] += factor * term[i];
        }
        SN_EACH(i, here) to[at + i] = end(sums[i], at + i);
    }
}

// The same for two terms or more of `n` values, rounded once.
template <class T, class End>
void add_up(const std::vector<const T*>& terms, const std::vector<float>& factors, T* to, int64_t n,
            End end) {
    const T* const* x = terms.data();
    const float* c = factors.data();
    const size_t many = terms.size();
    parallel(n, static_cast<int64_t>(many),
             [=](int64_t begin, int64_t stop) { add_up_part(x, c, many, to, begin, stop, end); });
}

}  // namespace sn
