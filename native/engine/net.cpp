#include "net.hpp"

#include <algorithm>
#include <chrono>
#include <set>

extern "C" {
#include "../ndarray/threads.h"
}

#include "instructions.hpp"
#include "parallel.hpp"
#include "plan/backups.hpp"

namespace sn {

namespace {
// Adds the time until its destruction to a total, if there is one.
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

Blob& Net::add_param(const Shape& shape, std::shared_ptr<const sn_array> data,
                     std::shared_ptr<const sn_array> diff) {
    params.emplace_back();
    Blob& blob = params.back();
    blob.data.share(std::make_shared<Storage>(std::move(data)));
    blob.diff.share(std::make_shared<Storage>(std::move(diff)));
    blob.reshape(shape);
    // The same gradient in another shape.
    const auto [same, is_new] = gradients_.emplace(blob.diff.read(), &blob);
    if (!is_new) same->second->alone = blob.alone = false;
    return blob;
}

namespace {
Random random_of(uint64_t seed, size_t index) {
    return Random(seed * 0x9e3779b97f4a7c15ULL + index + 1);
}
}  // namespace

Layer& Net::add_layer(const std::string& type, const std::string& name, const Blobs& bottoms,
                      const Blobs& tops, const Blobs& own) {
    Layer layer;
    layer.index = layers.size();
    layer.type = type;
    layer.name = name;
    layer.train = train;
    layer.bottoms = bottoms, layer.tops = tops, layer.params = own;
    layer.propagate.assign(bottoms.size(), false);
    layer.learns.assign(own.size(), false);
    layer.loss_weights.assign(tops.size(), 0.0F);
    layer.net = this;
    layer.random = random_of(seed, layer.index);
    layer.kernel = make_kernel(type);
    forward_ns.resize(layer.index + 1);
    backward_ns.resize(layer.index + 1);
    layers.push_back(std::move(layer));
    Layer* added = &layers.back();
    for (Blob* param : own) {
        if (!param->readers.empty()) param->alone = false;
        param->readers.push_back(added);
    }
    for (Blob* bottom : bottoms) bottom->readers.push_back(added);
    for (Blob* top : tops) top->writers.push_back(added);
    return *added;
}

void Net::reseed(uint64_t from) {
    seed = from;
    for (auto& layer : layers) layer.random = random_of(seed, layer.index);
}

void Net::time(bool on) {
    timed_ = on;
    forward_ns.assign(layers.size(), 0.0);
    backward_ns.assign(layers.size(), 0.0);
}

// Primitives are made for a number of threads.  When that changes (sn_set_threads, or a fork,
// whose child has one), they are made again.
void Net::gather_threads() {
    blocks_channels_.reset();
    const int team = threads();
    if (team == threads_) return;
    threads_ = team;
    for (auto& layer : layers) {
        const bool was_ready = layer.is_ready();
        layer.forget();
        if (was_ready) make_ready(layer);
    }
}

namespace {
// What one thread multiplies in the time that a second one needs to begin and to end: 4 us.
bool is_little(const Layer& layer) {
    const auto products = layer.kernel->products(layer);
    return products && *products < 3e5;
}
}  // namespace

double Layer::in_float32(double products) const {
    if (!net->narrow() && !int8) return products;
    return products / (has_amx() ? 8 : int8 ? 4 : 2);
}

void Net::make_ready(Layer& layer) {
    const bool is_prepared = layer.exchange_kernel();
    layer.fused = false;
    layer.alone = false;
    guarded(layer, [&] {
        layer.alone =
            is_little(layer) && !(layer.fused_product && !is_little(*layer.fused_product));
        std::optional<Team> team;
        if (layer.alone) team.emplace(1);
        if (!is_prepared) layer.kernel->reshape(layer);
        for (size_t t = 0; t < layer.loss_weights.size(); ++t) {
            if (layer.loss_weights[t] == 0.0F) continue;
            Tensor& diff = layer.tops[t]->diff;
            std::fill_n(diff.write(), diff.count(), layer.loss_weights[t]);
        }
        layer.note_shapes();
    });
}

void Net::prepare(size_t first, size_t last) {
    gather_threads();
    follow_fusions();
    find_gates();
    for (size_t i = first; i <= last && i < layers.size(); ++i)
        if (!layers[i].is_ready()) make_ready(layers[i]);
    find_last_readers();
}

// Also updates the views of a pass that ended early.
template <class F>
void Net::settled(F&& run) {
    try {
        run();
    } catch (...) {
        settle();
        throw;
    }
    settle();
}

double Net::forward(size_t first, size_t last) {
    gather_threads();
    if (wants_changed_) follow_wants();
    double loss = 0;
    settled([&] { loss = forward_layers(first, last); });
    return loss;
}

double Net::forward_layers(size_t first, size_t last) {
    double loss = 0;
    choose_fusions(first, last);
    choose_twins(first, last);
    for (size_t i = first; i <= last; ++i) {
        Layer& layer = layers[i];
        if (is_fused(layer, first)) {
            give_back_read(layer);
            continue;
        }
        const Clock clock(timed_ ? &forward_ns[i] : nullptr);
        guarded(layer, [&] {
            layer.check_ready();
            check_bottoms(layer);
            if (layer.fused && !are_ready(layer)) {
                if (layer.attention) layer.refuse("a layer before it has changed its shape");
                layer.fused = false;
            }
            run_forward(layer);
            // Some layers shape their top by the values of their input.
            if (!layer.is_ready()) layer.note_shapes();
        });
        if (layer.waits) continue;
        if (layer.twin && layer.twin->waits) give_back_read(*layer.twin);
        give_back_read(layer);
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
    return loss;
}

void Net::backward(size_t first, size_t last, bool overwrite) {
    // Preparing the kernels again would lose the results of the forward pass in them.
    if (!sn_can_run(threads_))
        throw std::logic_error("the process has forked since the forward pass: run it again first");
    const Pass pass(threads_, scratch, pages);
    for (Blob& param : params) {
        param.blank = overwrite;
        if (!param.alone) param.clear_blank();
    }
    if (wants_changed_) find_last_readers();
    settled([&] {
        split_fusions(first, last);
        choose_gates(first, last);
        for (size_t i = first + 1; i-- > last;) {
            Layer& layer = layers[i];
            if (!layer.backward) continue;
            if (!is_passed(layer, last)) {
                const Clock clock(timed_ ? &backward_ns[i] : nullptr);
                guarded(layer, [&] {
                    layer.check_ready();
                    const UseBackups using_them(layer);
                    check_gradients(layer);
                    layer.kernel->backward(layer);
                });
            }
            give_back_passed(layer);
        }
    });
}

// Whether another layer computes this one's gradients too, in a pass down to `last`.
bool Net::is_passed(const Layer& layer, size_t last) {
    const Layer* after = next(layer);
    return (after && after->gated) ||
           (is_fused(layer, last) && layer.fused_into->kernel->fuses_backward());
}

sn_net_bytes Net::memory() const {
    sn_net_bytes sum = {};
    std::set<const Storage*> seen;
    std::set<const float*> counted;
    for (const auto* list : {&blobs, &params})
        for (const Blob& blob : *list)
            for (const Tensor* tensor : {&blob.data, &blob.diff}) {
                const Storage& storage = tensor->storage();
                if (!seen.insert(&storage).second) continue;
                sum.rows += static_cast<int64_t>(storage.row_bytes());
                sum.layouts += static_cast<int64_t>(storage.layout_bytes(counted));
            }
    sum.scratch = static_cast<int64_t>(scratch.bytes());
    sum.pages = static_cast<int64_t>(pages.bytes());
    return sum;
}

void Net::settle() {
    for (auto& param : params) param.clear_blank();
    for (auto& blob : blobs) {
        blob.data.storage().settle();
        blob.diff.storage().settle();
    }
}

}  // namespace sn
