// One step of a long short-term memory, after its weights (Caffe: lstm_unit_layer.cpp).
#pragma once

#include "../engine/exponential.hpp"
#include "../engine/parallel.hpp"

extern "C" {
#include "../ndarray/kernel.h"
}

namespace sn {

// Loops with calls are not vectorised.
[[gnu::always_inline]] inline float sigmoid(float x) {
    return 1.0F / (1.0F + fast_exp(-x));
}

// As in Caffe's LSTM.
[[gnu::always_inline]] inline float gate_tanh(float x) {
    return 2.0F * sigmoid(2.0F * x) - 1.0F;
}

// body(stream, unit of the stream, unit of all, how many) for runs of units of one stream each.
template <class F>
void each_run(int64_t streams, int64_t units, F body) {
    if (units == 0) return;
    parallel(streams * units, 64, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end;) {
            const int64_t n = i / units, stop = std::min(end, (n + 1) * units);
            body(n, i - n * units, i, stop - i);
            i = stop;
        }
    });
}

SN_KERNEL inline void lstm_forward_run(int64_t count, int64_t units, float cont,
                                       const float* before, const float* in, float* out,
                                       float* cell, float* squashed, float* hidden) {
    SN_EACH(i, count) {
        const float input = sigmoid(in[i]), output = sigmoid(in[2 * units + i]);
        const float forget = cont == 0.0F ? 0.0F : cont * sigmoid(in[units + i]);
        const float candidate = gate_tanh(in[3 * units + i]);
        out[i] = input, out[units + i] = forget;
        out[2 * units + i] = output, out[3 * units + i] = candidate;
        cell[i] = forget * before[i] + input * candidate;
        squashed[i] = gate_tanh(cell[i]);
        hidden[i] = output * squashed[i];
    }
}

SN_KERNEL inline void lstm_backward_run(int64_t count, int64_t units, const float* before,
                                        const float* gate, const float* squashed,
                                        const float* dcell, const float* dhidden, float* dbefore,
                                        float* out) {
    SN_EACH(i, count) {
        const float input = gate[i], forget = gate[units + i], output = gate[2 * units + i];
        const float candidate = gate[3 * units + i], t = squashed[i];
        const float d = dcell[i] + dhidden[i] * output * (1 - t * t);
        out[i] = d * candidate * input * (1 - input);
        out[units + i] = d * before[i] * forget * (1 - forget);
        out[2 * units + i] = dhidden[i] * t * output * (1 - output);
        out[3 * units + i] = d * input * (1 - candidate * candidate);
        dbefore[i] = d * forget;
    }
}

// Computes the gates, the cell, its tanh and the hidden state from sums (streams × 4 units: input,
// forget, output, candidate).  `gates` may be `sums`.  A fractional cont scales the forget gate.
inline void lstm_forward(int64_t streams, int64_t units, const float* cont, const float* before,
                         const float* sums, float* gates, float* cell, float* squashed,
                         float* hidden) {
    each_run(streams, units, [=](int64_t n, int64_t u, int64_t i, int64_t count) {
        const int64_t first = n * 4 * units + u;
        lstm_forward_run(count, units, cont[n], before + i, sums + first, gates + first, cell + i,
                         squashed + i, hidden + i);
    });
}

// Computes the gradients of the sums and of the previous cell from those of cell and hidden state;
// the previous cell's may replace that of the cell.  The forget gate's slope is f (1 - f) of the
// scaled gate, as in Caffe.
inline void lstm_backward(int64_t streams, int64_t units, const float* before, const float* gates,
                          const float* squashed, const float* dcell, const float* dhidden,
                          float* dbefore, float* dsums) {
    each_run(streams, units, [=](int64_t n, int64_t u, int64_t i, int64_t count) {
        const int64_t first = n * 4 * units + u;
        lstm_backward_run(count, units, before + i, gates + first, squashed + i, dcell + i,
                          dhidden + i, dbefore + i, dsums + first);
    });
}

}  // namespace sn
