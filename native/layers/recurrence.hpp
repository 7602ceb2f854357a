// What RNN and LSTM share: the weights around their steps, and the state that outlives a pass
// (Caffe: recurrent_layer.cpp).
#pragma once

#include <omp.h>

#include <algorithm>
#include <exception>

#include "../engine/layer.hpp"
#include "../engine/matmul/product.hpp"
#include "../engine/matmul/tensor_product.hpp"
#include "../engine/parallel.hpp"
#include "../engine/pass.hpp"

namespace sn {

class Recurrence {
   public:
    // Streams that walk through all steps in a thread of their own.
    struct Part {
        int64_t begin, end;
        StepProduct recur;
    };

    // `gates` sums per unit and step.
    void reshape(const Layer& layer, int64_t gates);

    // sums = W x + b, + W x_static, of all steps at once; makes ready for recur().
    void transform(const Layer& layer);
    // The hidden state at the start of a pass (h, or c of LSTM): that of the pass before, or a
    // bottom.
    const float* first(const Layer& layer, size_t state) const;
    // Step t: sums += W_h (cont · hidden).
    void recur(const Layer& layer, int64_t t, const float* hidden);
    // Where it pays, parts of the streams for as many threads, for layers that call walk(); behind
    // reshape().
    void split(const Layer& layer);
    // body(part) for each part, in threads; all streams are one where there are no others.
    template <class F>
    void walk(F&& body);
    // The same as the other recur(), of a part; the memory is that of all streams.
    void recur(Part& part, const float* cont, int64_t t, const float* hidden, float* conted,
               float* to);
    float* conted() { return conted_.edit(); }
    // Keeps a state for the next pass, or writes it to a top.
    void last(const Layer& layer, size_t state, const float* values);

    // Prepares reach_back().
    void turn(const Layer& layer);
    // The hidden gradient of step t - 1: dsums of step t through cont · W_h.
    void reach_back(const Layer& layer, int64_t t, float* dhidden);
    // From dsums of all steps the gradients of the weights and the inputs.
    void gradients(const Layer& layer);

    // The number of the first parameter after those of sums.
    size_t next_param() const { return static_param_ + (fixed_ > 0 ? 2 : 1); }
    const float* cont(const Layer& layer, int64_t t) const { return layer.bottom(1) + t * streams; }

    int64_t steps = 0, streams = 0, units = 0, width = 0;
    int64_t state_size() const { return streams * units; }
    // (steps × streams, width)
    Tensor sums, dsums;

   private:
    // Keeps its beginning when it shrinks, and when it grows again to what it was; zero otherwise,
    // as Caffe's blobs do.
    struct Carried {
        std::vector<float> values;
        void resize(int64_t size) {
            if (static_cast<size_t>(size) > values.size())
                values.assign(static_cast<size_t>(size), 0.0F);
        }
    };

    void make_products(const Layer& layer);
    void transform_by_kept(const Layer& layer);

    static constexpr size_t static_param_ = 2;
    size_t hidden_param() const { return static_param_ + (fixed_ > 0 ? 1 : 0); }
    void backward_static(const Layer& layer);

    int64_t inputs_ = 0, fixed_ = 0;
    bool exposed_ = false;
    std::vector<Carried> states_;
    // cont · hidden state before each step.
    Tensor conted_;
    // W x_static, later the gradient of it.
    std::vector<float> static_sums_;
    TensorProduct transform_, input_weights_, hidden_weights_, input_data_;
    // In the test phase: W x + b, with W in the layout that multiplies fastest.
    bool keeps_ = false;
    Product kept_;
    StepProduct recur_, reach_back_;
    std::vector<Part> parts_;
};

// body(i) for each i below `many`, in threads that have no others.
template <class F>
void in_threads(int many, F&& body) {
    std::exception_ptr failure;
#pragma omp parallel num_threads(std::min(many, threads()))
    {
        const Team alone(1);
        for (int i = omp_get_thread_num(); i < many; i += omp_get_num_threads()) try {
                body(i);
            } catch (...) {
#pragma omp critical
                failure = std::current_exception();
            }
    }
    if (failure) std::rethrow_exception(failure);
}

template <class F>
void Recurrence::walk(F&& body) {
    const auto many = static_cast<int>(parts_.size());
    if (many == 1) return body(parts_[0]);
    in_threads(many, [&](int i) { body(parts_[static_cast<size_t>(i)]); });
}

}  // namespace sn
