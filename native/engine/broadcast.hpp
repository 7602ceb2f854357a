// A tensor seen from some of its axes: which of its values belong to which value of a small operand
// (a factor or bias for each channel, the statistics of each channel).
#pragma once

#include <vector>

#include "elementwise.hpp"

namespace sn {

// Values lie as (outer, blocks, inner, lanes); value (o, b, i, l) has operand b * lanes + l.
// Plain rows have one lane. oneDNN's layouts have eight or sixteen; channels-last has all of them.
struct Broadcast {
    int64_t outer = 1, blocks = 1, inner = 1, lanes = 1;
    // Values of the operand, and the records that they belong to; in a record's last block fewer
    // lanes may count.
    int64_t operands = 1, records = 1;
    dnnl::memory::desc desc;

    int64_t padded() const { return blocks * lanes; }
    // Of a record.
    int64_t own() const { return operands / records; }
    int64_t own_padded() const { return padded() / records; }
};

// The view of a tensor from `axes` axes on from `axis`, in the tensor's present layout and type
// where these are the channels, or those of each record, else in plain rows of float32.
Broadcast broadcast(const Tensor& tensor, size_t axis, size_t axes);

// sums[c] = the sum of all values of a tensor, or of their products with another's, that belong to
// operand c, in an order that does not depend on the number of threads.
class OperandSums {
   public:
    const std::vector<double>& add_up(const Broadcast& view, const Tensor& tensor) {
        const auto memory = tensor.read(view.desc);
        typed(view.desc, [&](auto type) {
            const auto* x = values_of<decltype(type)>(memory);
            add_terms(view, [=](int64_t i) -> float { return x[i]; });
        });
        return sums_;
    }
    const std::vector<double>& add_up(const Broadcast& view, const Tensor& one,
                                      const Tensor& other) {
        const auto first = one.read(view.desc), second = other.read(view.desc);
        typed(view.desc, [&](auto type) {
            const auto *x = values_of<decltype(type)>(first),
                       *y = values_of<decltype(type)>(second);
            add_terms(view, [=](int64_t i) -> float { return x[i] * y[i]; });
        });
        return sums_;
    }

   private:
    // `term` receives the place of a value in memory.
    template <class F>
    void add_terms(const Broadcast& view, F&& term) {
        const int64_t width = view.lanes;
        const int64_t rows = std::max<int64_t>(64, 4096 / std::max<int64_t>(1, width));
        const int64_t chunks = std::max<int64_t>(1, (view.inner + rows - 1) / rows);
        const int64_t strip = 256, strips = (width + strip - 1) / strip;
        const int64_t items = view.outer * view.blocks * chunks;
        parts_.assign(static_cast<size_t>(items * width), 0.0);
        parallel_each(items * strips, std::min(view.inner, rows) * std::min(width, strip),
                      [&](int64_t at) {
                          const int64_t item = at / strips, lane = at % strips * strip;
                          const int64_t first = item % chunks * rows;
                          const int64_t last = std::min(view.inner, first + rows);
                          const int64_t base = item / chunks * view.inner * width;
                          double* sums = parts_.data() + item * width;
                          if (width == 1) {
                              sums[0] = row(base + first, base + last, term);
                              return;
                          }
                          const int64_t stop = std::min(width, lane + strip);
                          for (int64_t i = first; i < last; ++i)
                              for (int64_t l = lane; l < stop; ++l)
                                  sums[l] += static_cast<double>(term(base + i * width + l));
                      });
        sums_.assign(static_cast<size_t>(view.padded()), 0.0);
        for (int64_t item = 0; item < items; ++item) {
            double* sum = sums_.data() + item / chunks % view.blocks * width;
            const double* part = parts_.data() + item * width;
            for (int64_t l = 0; l < width; ++l) sum[l] += part[l];
        }
    }

    // Eight running sums, so that the compiler may use its vectors.
    template <class F>
    static double row(int64_t begin, int64_t end, F&& term) {
        double sums[8] = {};
        int64_t i = begin;
        for (; i + 8 <= end; i += 8)
            for (int64_t k = 0; k < 8; ++k) sums[k] += static_cast<double>(term(i + k));
        double rest = 0;
        for (; i < end; ++i) rest += static_cast<double>(term(i));
        return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
               ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest;
    }

    std::vector<double> parts_, sums_;
};

// Calls step(place, operand) for every value, in threads.
template <class F>
void each(const Broadcast& view, F&& step) {
    const int64_t width = view.lanes, inner = view.inner, blocks = view.blocks;
    if (width == 1) {
        parallel(view.outer * blocks * inner, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end;) {
                const int64_t row = i / inner, operand = row % blocks;
                for (const int64_t stop = std::min(end, (row + 1) * inner); i < stop; ++i)
                    step(i, operand);
            }
        });
        return;
    }
    parallel_each(view.outer * blocks * inner, width, [&](int64_t r) {
        const int64_t operand = r / inner % blocks * width;
        for (int64_t l = 0; l < width; ++l) step(r * width + l, operand + l);
    });
}

// The same in blocks of so many lanes, in which neighbours have operands of their own.
template <int64_t fixed, class From, class To, class F>
void map_blocks(const Broadcast& view, const From* from, To* to, F f) {
    const int64_t width = fixed ? fixed : view.lanes, inner = view.inner, blocks = view.blocks;
    parallel(view.outer * blocks * inner, width, [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end;) {
            const int64_t block = row / inner, operand = block % blocks * width;
            for (const int64_t stop = std::min(end, (block + 1) * inner); row < stop; ++row) {
                const From* x = from + row * width;
                To* y = to + row * width;
#pragma omp simd
                for (int64_t l = 0; l < width; ++l) y[l] = f(x[l], operand + l);
            }
        }
    });
}

// to[i] = f(from[i], operand)
template <class From, class To, class F>
void map(const Broadcast& view, const From* from, To* to, F f) {
    if (view.lanes == 1)
        each(view, [=](int64_t i, int64_t c) { to[i] = f(from[i], c); });
    else if (view.lanes == 16)
        map_blocks<16>(view, from, to, f);
    else
        map_blocks<0>(view, from, to, f);
}

// out = f(value, operand) of every value of `in`, as the view lies.
template <class F>
void map(const Broadcast& view, const Tensor& in, Tensor& out, F f) {
    const auto source = in.read(view.desc), target = out.write(view.desc);
    typed(view.desc, [&](auto type) {
        using T = decltype(type);
        map(view, static_cast<const T*>(values_of<T>(source)), values_of<T>(target), f);
    });
}

}  // namespace sn
