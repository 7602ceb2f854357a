// One step of a long short-term memory, after its weights (Caffe: lstm_unit_layer.cpp).
#pragma once

#include "../engine/exponential.hpp"
#include "../engine/parallel.hpp"

namespace sn {

inline float sigmoid(float x) {
    return 1.0F / (1.0F + fast_exp(-x));
}

// As Caffe's LSTM has it.
inline float gate_tanh(float x) {
    return 2.0F * sigmoid(2.0F * x) - 1.0F;
}

// body(stream, unit of the stream, unit of all) for all units of all streams.
template <class F>
void each_unit(int64_t streams, int64_t units, F body) {
    if (units == 0) return;
    parallel(
        streams * units,
        [=](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end;) {
                const int64_t n = i / units, stop = std::min(end, (n + 1) * units);
                for (; i < stop; ++i) body(n, i - n * units, i);
            }
        },
        64);
}

// From sums (streams × 4 units: input, forget, output, candidate) the gates, the cell, its tanh
// and the hidden state.  `gates` may be `sums`.  A fractional cont scales the forget gate.
inline void lstm_forward(int64_t streams, int64_t units, const float* cont, const float* before,
                         const float* sums, float* gates, float* cell, float* squashed,
                         float* hidden) {
    each_unit(streams, units, [=](int64_t n, int64_t u, int64_t i) {
        const float* in = sums + n * 4 * units + u;
        float* out = gates + n * 4 * units + u;
        const float input = sigmoid(in[0]), output = sigmoid(in[2 * units]);
        const float forget = cont[n] == 0.0F ? 0.0F : cont[n] * sigmoid(in[units]);
        const float candidate = gate_tanh(in[3 * units]);
        out[0] = input, out[units] = forget, out[2 * units] = output, out[3 * units] = candidate;
        cell[i] = forget * before[i] + input * candidate;
        squashed[i] = gate_tanh(cell[i]);
        hidden[i] = output * squashed[i];
    });
}

// From the gradients of cell and hidden state those of the sums and of the cell before, which
// may be where that of the cell is.  The forget gate's slope is f (1 - f) of the scaled gate,
// as in Caffe.
inline void lstm_backward(int64_t streams, int64_t units, const float* before, const float* gates,
                          const float* squashed, const float* dcell, const float* dhidden,
                          float* dbefore, float* dsums) {
    each_unit(streams, units, [=](int64_t n, int64_t u, int64_t i) {
        const float* gate = gates + n * 4 * units + u;
        float* out = dsums + n * 4 * units + u;
        const float input = gate[0], forget = gate[units], output = gate[2 * units];
        const float candidate = gate[3 * units], t = squashed[i];
        const float d = dcell[i] + dhidden[i] * output * (1 - t * t);
        out[0] = d * candidate * input * (1 - input);
        out[units] = d * before[i] * forget * (1 - forget);
        out[2 * units] = dhidden[i] * t * output * (1 - output);
        out[3 * units] = d * input * (1 - candidate * candidate);
        dbefore[i] = d * forget;
    });
}

}  // namespace sn
