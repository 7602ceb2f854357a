// Pooling of one plane of an image in plain rows, with Caffe's windows (Caffe: pooling_layer.cpp).
#pragma once

#include <string>

#include "../engine/layer.hpp"

namespace sn {

// One axis of the windows.
struct Span {
    int64_t size, outputs, kernel, stride, pad;

    int64_t begin(int64_t o) const { return std::max<int64_t>(o * stride - pad, 0); }
    int64_t end(int64_t o) const { return std::min(o * stride - pad + kernel, size); }
    // The divisor of an average counts the padding, up to its far edge.
    int64_t padded(int64_t o) const {
        const int64_t begin = o * stride - pad;
        return std::min(begin + kernel, size + pad) - begin;
    }
};

class PlanePool {
   public:
    enum class Method { max, ave, sample, expect };

    PlanePool() = default;
    // Options `prefix` + method, kernel, stride, pad.
    PlanePool(const Layer& layer, const std::string& prefix, int64_t rows_out, int64_t columns_out);

    Method method() const { return method_; }
    const Span& rows() const { return rows_; }
    const Span& columns() const { return columns_; }
    int64_t inputs() const { return rows_.size * columns_.size; }
    int64_t outputs() const { return rows_.outputs * columns_.outputs; }
    // Some window lies beyond the input.
    bool has_empty() const;
    // Whether a backward pass needs the positions that were picked.
    bool picks() const { return method_ == Method::max || method_ == Method::sample; }

    // `picked` (or null) takes the position of each pick, -1 in an empty window; `number` is that
    // of the first output, by which random numbers are drawn.
    void forward(const float* in, float* out, int32_t* picked, const Random::Draw& draw,
                 int64_t number) const;
    // Whether a backward pass needs the values: that of EXPECT alone.
    bool looks_back() const { return method_ == Method::expect; }
    // Adds to `din`. Reads `in` and `out` if looks_back(), `picked` if picks().
    void backward(const float* in, const float* out, const int32_t* picked, const float* dout,
                  float* din) const;

   private:
    template <class F>
    void windows(F&& body) const;
    void forward_max(const float* in, float* out, int32_t* picked) const;
    void forward_ave(const float* in, float* out) const;
    void forward_sample(const float* in, float* out, int32_t* picked, const Random::Draw& draw,
                        int64_t number) const;
    void forward_expect(const float* in, float* out) const;

    Method method_ = Method::max;
    Span rows_{}, columns_{};
};

}  // namespace sn
