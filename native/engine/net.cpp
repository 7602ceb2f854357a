#include "net.hpp"

#include <omp.h>

#include <chrono>

extern "C" {
#include "../ndarray/threads.h"
}

#include "parallel.hpp"

namespace sn {

namespace {
// Adds the time until it goes away to a total, if there is one.
class Clock {
   public:
    explicit Clock(double* total) : total_(total) {
        if (total_) start_ = Steady::now();
    }
    ~Clock() {
        if (total_)
            *total_ += std::chrono::duration<double, std::nano>(Steady::now() - start_).count();
    }
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;

   private:
    using Steady = std::chrono::steady_clock;
    double* total_;
    Steady::time_point start_;
};
}  // namespace

Blob& Net::add_blob(const std::string& name) {
    blobs.emplace_back();
    blobs.back().name = name;
    return blobs.back();
}

Blob& Net::add_param(const Shape& shape, std::shared_ptr<float> data, std::shared_ptr<float> diff) {
    params.emplace_back();
    Blob& blob = params.back();
    const auto size = static_cast<size_t>(count(shape));
    blob.data.share(std::make_shared<Storage>(std::move(data), size));
    blob.diff.share(std::make_shared<Storage>(std::move(diff), size));
    blob.reshape(shape);
    return blob;
}

Layer& Net::add_layer(const std::string& type, const std::string& name) {
    layers.emplace_back();
    forward_ns.push_back(0.0);
    backward_ns.push_back(0.0);
    Layer& layer = layers.back();
    layer.index = layers.size() - 1;
    layer.type = type;
    layer.name = name;
    layer.train = train;
    layer.net = this;
    layer.random = Random(seed * 0x9e3779b97f4a7c15ULL + layers.size());
    return layer;
}

void Net::reseed(uint64_t from) {
    seed = from;
    for (auto& layer : layers)
        layer.random = Random(seed * 0x9e3779b97f4a7c15ULL + layer.index + 1);
}

void Net::time(bool on) {
    timed_ = on;
    forward_ns.assign(layers.size(), 0.0);
    backward_ns.assign(layers.size(), 0.0);
}

// What goes wrong inside a layer is that layer's refusal, except for want of memory.
template <class F>
void Net::guarded(Layer& layer, F&& run) {
    running = layer.index;
    try {
        run();
    } catch (const Refusal& refusal) {
        throw Refusal(layer.type + ": " + refusal.what());
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        throw Refusal(layer.type + ": " + error.what());
    }
}

// In the test phase an in-place ReLU right behind a convolution costs nothing of its own.
void Net::find_fusions() {
    for (auto& layer : layers) layer.fused_relu = nullptr, layer.fused_into = nullptr;
    if (train) return;
    for (size_t i = 0; i + 1 < layers.size(); ++i) {
        Layer &layer = layers[i], &next = layers[i + 1];
        if (layer.type == "Convolution" && layer.tops.size() == 1 && next.type == "ReLU" &&
            next.bottoms[0] == layer.tops[0] && next.in_place() &&
            next.options.real("negative_slope") == 0.0) {
            layer.fused_relu = &next;
            next.fused_into = &layer;
        }
    }
}

// Primitives are made for a number of threads.  Where that changes (sn_set_threads, or a fork,
// whose child has one), they are made again.
void Net::gather_threads() {
    const int team = threads();
    omp_set_num_threads(team);
    if (team == threads_) return;
    const bool ready = threads_ != 0;
    threads_ = team;
    if (ready && !layers.empty()) prepare(0, layers.size() - 1);
}

void Net::prepare(size_t first, size_t last) {
    gather_threads();
    find_fusions();
    for (size_t i = first; i <= last && i < layers.size(); ++i) {
        Layer& layer = layers[i];
        guarded(layer, [&] {
            if (!layer.kernel) {
                const auto factory = kernels().find(layer.type);
                if (factory == kernels().end()) throw Refusal("the engine has no such layer");
                layer.kernel = factory->second();
            }
            layer.kernel->reshape(layer);
        });
        for (size_t t = 0; t < layer.loss_weights.size(); ++t)
            if (layer.loss_weights[t] != 0.0F) {
                Tensor& diff = layer.tops[t]->diff;
                float* values = diff.write();
                for (int64_t k = 0; k < diff.count(); ++k) values[k] = layer.loss_weights[t];
            }
    }
}

int threads() {
    return sn_team();
}

double Net::forward(size_t first, size_t last) {
    gather_threads();
    double loss = 0;
    pass_last_ = last;
    for (size_t i = first; i <= last; ++i) {
        Layer& layer = layers[i];
        if (layer.fused_into && layer.fused_into->index >= first) continue;
        const Clock clock(timed_ ? &forward_ns[i] : nullptr);
        guarded(layer, [&] { layer.kernel->forward(layer); });
        for (size_t t = 0; t < layer.loss_weights.size(); ++t) {
            if (layer.loss_weights[t] == 0.0F) continue;
            const float* values = layer.tops[t]->data.read();
            const float* weights = layer.tops[t]->diff.read();
            double sum = 0;
            for (int64_t k = 0; k < layer.tops[t]->count(); ++k)
                sum += static_cast<double>(values[k]) * static_cast<double>(weights[k]);
            loss += sum;
        }
    }
    settle();
    return loss;
}

void Net::backward(size_t first, size_t last) {
    gather_threads();
    for (size_t i = first + 1; i-- > last;) {
        Layer& layer = layers[i];
        if (!layer.backward) continue;
        const Clock clock(timed_ ? &backward_ns[i] : nullptr);
        guarded(layer, [&] { layer.kernel->backward(layer); });
    }
    settle();
}

void Net::settle() {
    for (auto& blob : blobs) {
        blob.data.storage().settle();
        blob.diff.storage().settle();
    }
}

}  // namespace sn
