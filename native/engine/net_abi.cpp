// include/sparknet/net.h over Net: checks numbers, holds the lock, turns exceptions into statuses.
#include <sparknet/engine.h>
#include <sparknet/net.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "guard.hpp"
#include "net.hpp"
#include "parallel.hpp"

struct sn_net {
    sn::Net net;
    std::mutex lock;
};

namespace {

constexpr int most_axes = 32;  // what sn_net_blob_shape's callers hold ready

// The layer and net in which this thread's last call failed; other threads have their own.
struct Failed {
    const sn_net* net;
    int layer;
};
thread_local Failed failed = {nullptr, -1};

sn_status fail(sn_status status, const std::string& message) {
    return sn_fail(status, "%s", message.c_str());
}

// Runs body under the net's lock, on the present threads; an error of a layer has a status
// of its own.
template <class Body>
sn_status guard(sn_net* net, Body&& body) {
    sn_status status = SN_OK;
    const sn_status other = sn::guarded([&] {
        const std::lock_guard<std::mutex> held(net->lock);
        const sn::Pass pass(sn::threads(), net->net.scratch, net->net.pages);
        failed = {net, -1};
        try {
            body(net->net);
        } catch (const sn::Refusal& refusal) {
            failed.layer = static_cast<int>(net->net.running);
            status = fail(SN_ERROR_LAYER, refusal.what());
        }
    });
    return other != SN_OK ? other : status;
}

template <class List>
auto& at(List& list, int number, const char* what) {
    if (number < 0 || static_cast<size_t>(number) >= list.size())
        throw sn::Failure(SN_ERROR_INDEX,
                          "there is no " + std::string(what) + " " + std::to_string(number));
    return list[static_cast<size_t>(number)];
}

sn::Layer& layer_at(sn::Net& net, int number) {
    return at(net.layers, number, "layer");
}

void range(sn::Net& net, int first, int last) {
    layer_at(net, first);
    layer_at(net, last);
}

// A C list: a count and a pointer to the first element.
template <class T>
std::vector<T> list(int count, const T* first) {
    if (count < 0) throw sn::Failure(SN_ERROR_ARRAY, "a list has fewer than no entries");
    return {first, first + count};
}

sn::Shape axes(int ndim, const int64_t* shape) {
    if (ndim < 0 || ndim > most_axes)
        throw sn::Failure(SN_ERROR_ARRAY, "a blob has at most 32 axes");
    return list(ndim, shape);
}

// Options and gradients affect what a kernel prepares.
sn::Layer& changed(sn::Net& net, int number) {
    sn::Layer& layer = layer_at(net, number);
    layer.forget();
    return layer;
}

sn::Blobs pick(std::deque<sn::Blob>& blobs, int count, const int* numbers) {
    sn::Blobs picked;
    for (const int number : list(count, numbers)) picked.push_back(&at(blobs, number, "blob"));
    return picked;
}

// The memory of a parameter, kept alive by a view of its own.
std::shared_ptr<const sn_array> hold(const sn_array* array, sn::Shape& shape) {
    sn_layout layout;
    sn_array_describe(&layout, array);
    if (layout.dtype != SN_FLOAT32 || !layout.contiguous || layout.readonly)
        throw sn::Failure(SN_ERROR_ARRAY, "values need a writable float32 array without gaps");
    shape.assign(layout.shape, layout.shape + layout.ndim);
    sn_array* view = nullptr;
    if (sn_array_reshape(&view, array, layout.ndim, layout.shape, 1) != SN_OK)
        throw std::bad_alloc();
    return {view, sn_array_free};
}

}  // namespace

sn_status sn_net_create(sn_net** out, int train, uint64_t seed) {
    return sn::guarded([&] {
        auto net = std::make_unique<sn_net>();
        net->net.train = train != 0;
        net->net.seed = seed;
        *out = net.release();
    });
}

sn_status sn_net_use_bf16(sn_net* net) {
    return guard(net, [&](sn::Net& n) {
        if (!sn_has_bf16()) throw sn::Failure(SN_ERROR_ARRAY, "the processor has no bfloat16");
        n.factors = dnnl::memory::data_type::bf16;
        for (auto& layer : n.layers) layer.forget();
    });
}

sn_status sn_net_use_int8(sn_net* net, int layer, int on, const float* bias, int64_t count) {
    return guard(net, [&](sn::Net& n) {
        if (on != 0 && !sn_has_int8())
            throw sn::Failure(SN_ERROR_ARRAY, "the processor multiplies no numbers of eight bits");
        sn::Layer& found = layer_at(n, layer);
        found.int8 = on != 0;
        found.int8_bias.assign(bias, bias + (on != 0 ? count : 0));
        for (auto& one : n.layers) one.forget();
    });
}

sn_status sn_net_set_step(sn_net* net, int blob, float step, int is_signed, int may_be_int8) {
    return guard(net, [&](sn::Net& n) {
        if (!(step >= 0) || step > 1e30F)
            throw sn::Failure(SN_ERROR_ARRAY, "the step of a blob is not a size");
        sn::Blob& found = at(n.blobs, blob, "blob");
        found.step = step;
        found.is_signed = is_signed != 0;
        found.may_be_int8 = may_be_int8 != 0 && step > 0;
        for (auto& layer : n.layers) layer.forget();
    });
}

sn_status sn_net_share_blobs(sn_net* net) {
    return guard(net, [&](sn::Net& n) {
        n.keeps_blobs = false;
        for (auto& layer : n.layers) layer.forget();
    });
}

sn_status sn_net_want_blob(sn_net* net, int blob) {
    return guard(net, [&](sn::Net& n) { n.want(at(n.blobs, blob, "blob")); });
}

void sn_net_free(sn_net* net) {
    delete net;
}

sn_status sn_net_add_blob(int* out, sn_net* net, const char* name) {
    return guard(net, [&](sn::Net& n) {
        n.add_blob(name);
        *out = static_cast<int>(n.blobs.size()) - 1;
    });
}

sn_status sn_net_reshape_blob(sn_net* net, int blob, int ndim, const int64_t* shape) {
    return guard(net, [&](sn::Net& n) { at(n.blobs, blob, "blob").reshape(axes(ndim, shape)); });
}

sn_status sn_net_extend_blob(sn_net* net, int blob, int ndim, const int64_t* shape) {
    return guard(net, [&](sn::Net& n) { at(n.blobs, blob, "blob").extend(axes(ndim, shape)); });
}

sn_status sn_net_add_param(int* out, sn_net* net, const sn_array* data, const sn_array* diff) {
    return guard(net, [&](sn::Net& n) {
        sn::Shape shape, other;
        auto values = hold(data, shape), gradient = hold(diff, other);
        if (shape != other)
            throw sn::Failure(SN_ERROR_ARRAY, "a parameter's data and diff differ in shape");
        n.add_param(shape, std::move(values), std::move(gradient));
        *out = static_cast<int>(n.params.size()) - 1;
    });
}

sn_status sn_net_share_param(sn_net* net, int param, const sn_array* data) {
    return guard(net, [&](sn::Net& n) {
        sn::Blob& blob = at(n.params, param, "parameter");
        sn::Shape shape;
        auto values = hold(data, shape);
        if (shape != blob.shape())
            throw sn::Failure(SN_ERROR_ARRAY, "a shared parameter differs in shape");
        blob.data.share(std::make_shared<sn::Storage>(std::move(values)));
        // Blobs that share the parameter's values share the new ones.
        for (auto& layer : n.layers) layer.forget();
    });
}

sn_status sn_net_add_layer(int* out, sn_net* net, const char* type, const char* name,
                           int bottom_count, const int* bottoms, int top_count, const int* tops,
                           int param_count, const int* params) {
    return guard(net, [&](sn::Net& n) {
        const auto below = pick(n.blobs, bottom_count, bottoms);
        const auto above = pick(n.blobs, top_count, tops);
        const auto own = pick(n.params, param_count, params);
        sn::Layer& layer = n.add_layer(type, name, below, above, own);
        *out = static_cast<int>(layer.index);
    });
}

sn_status sn_layer_set_integers(sn_net* net, int layer, const char* key, int count,
                                const int64_t* values) {
    return guard(net, [&](sn::Net& n) {
        auto given = list(count, values);
        changed(n, layer).options.set(key, std::move(given));
    });
}

sn_status sn_layer_set_reals(sn_net* net, int layer, const char* key, int count,
                             const double* values) {
    return guard(net, [&](sn::Net& n) {
        auto given = list(count, values);
        changed(n, layer).options.set(key, std::move(given));
    });
}

sn_status sn_layer_set_text(sn_net* net, int layer, const char* key, const char* value) {
    return guard(net, [&](sn::Net& n) { changed(n, layer).options.set(key, std::string(value)); });
}

sn_status sn_layer_set_gradients(sn_net* net, int layer, int backward, const uint8_t* propagate,
                                 const uint8_t* learns) {
    return guard(net, [&](sn::Net& n) {
        sn::Layer& to = changed(n, layer);
        to.backward = backward != 0;
        for (size_t i = 0; i < to.propagate.size(); ++i) to.propagate[i] = propagate[i] != 0;
        for (size_t i = 0; i < to.learns.size(); ++i) to.learns[i] = learns[i] != 0;
    });
}

sn_status sn_layer_set_loss_weights(sn_net* net, int layer, const float* weights) {
    return guard(net, [&](sn::Net& n) {
        sn::Layer& to = changed(n, layer);
        to.loss_weights.assign(weights, weights + to.tops.size());
    });
}

sn_status sn_net_prepare(sn_net* net, int first, int last) {
    return guard(net, [&](sn::Net& n) {
        range(n, first, last);
        n.prepare(static_cast<size_t>(first), static_cast<size_t>(last));
    });
}

sn_status sn_net_forward(double* loss, sn_net* net, int first, int last) {
    return guard(net, [&](sn::Net& n) {
        range(n, first, last);
        *loss = n.forward(static_cast<size_t>(first), static_cast<size_t>(last));
    });
}

sn_status sn_net_backward(sn_net* net, int first, int last, int overwrite) {
    return guard(net, [&](sn::Net& n) {
        range(n, first, last);
        if (!n.keeps_blobs && !n.train)
            throw sn::Failure(
                SN_ERROR_ARRAY,
                "a net for testing whose blobs share memory has no backward pass: make it with "
                "keep_blobs=True");
        n.backward(static_cast<size_t>(first), static_cast<size_t>(last), overwrite != 0);
    });
}

int sn_net_failed_layer(const sn_net* net) {
    return failed.net == net ? failed.layer : -1;
}

sn_status sn_net_seed(sn_net* net, uint64_t seed) {
    return guard(net, [&](sn::Net& n) { n.reseed(seed); });
}

sn_status sn_net_draws(uint64_t* out, sn_net* net) {
    return guard(net, [&](sn::Net& n) {
        for (const auto& layer : n.layers) *out++ = layer.random.draws();
    });
}

sn_status sn_net_set_draws(sn_net* net, const uint64_t* draws) {
    return guard(net, [&](sn::Net& n) {
        for (auto& layer : n.layers) layer.random.set_draws(*draws++);
    });
}

sn_status sn_net_blob_shape(int* ndim, int64_t* shape, sn_net* net, int blob) {
    return guard(net, [&](sn::Net& n) {
        const sn::Shape& found = at(n.blobs, blob, "blob").shape();
        std::copy(found.begin(), found.end(), shape);
        *ndim = static_cast<int>(found.size());
    });
}

sn_status sn_net_blob_array(sn_array** out, sn_net* net, int blob, int diff) {
    sn_status made = SN_OK;
    const sn_status status = guard(net, [&](sn::Net& n) {
        sn::Blob& from = at(n.blobs, blob, "blob");
        sn::Tensor& tensor = diff != 0 ? from.diff : from.data;
        n.want(from);
        if (tensor.storage().is_gone() || !tensor.storage().has(tensor.count()))
            throw sn::Failure(SN_ERROR_ARRAY,
                              std::string("the ") + (diff != 0 ? "gradients" : "values") +
                                  " of blob '" + from.name +
                                  "' were given back after their last reader: ask for it before "
                                  "the pass, or make the net with keep_blobs=True");
        auto hold = std::make_unique<std::shared_ptr<float>>(tensor.expose());
        made = sn_array_borrow(
            out, hold->get(), SN_FLOAT32, static_cast<int>(tensor.shape().size()),
            tensor.shape().data(), nullptr, 0,
            [](void* held) { delete static_cast<std::shared_ptr<float>*>(held); }, hold.get());
        if (made == SN_OK) static_cast<void>(hold.release());
    });
    return status != SN_OK ? status : made;
}

sn_status sn_net_adopt(int* taken, sn_net* net, int blob, const sn_array* values) {
    return guard(net, [&](sn::Net& n) {
        sn::Tensor& data = at(n.blobs, blob, "blob").data;
        sn::Shape shape;
        auto rows = hold(values, shape);
        if (shape != data.shape())
            throw sn::Failure(SN_ERROR_ARRAY, "the array differs from the blob in shape");
        sn_layout layout;
        sn_array_describe(&layout, rows.get());
        *taken = data.adopt({rows, static_cast<float*>(layout.data)});
    });
}

sn_status sn_net_time(sn_net* net, int on) {
    return guard(net, [&](sn::Net& n) { n.time(on != 0); });
}

sn_status sn_net_times(double* forward, double* backward, sn_net* net) {
    return guard(net, [&](sn::Net& n) {
        std::copy(n.forward_ns.begin(), n.forward_ns.end(), forward);
        std::copy(n.backward_ns.begin(), n.backward_ns.end(), backward);
    });
}

sn_status sn_net_method(char* out, size_t size, sn_net* net, int layer, int part) {
    return guard(net, [&](sn::Net& n) {
        const sn::Layer& one = at(n.layers, layer, "layer");
        std::snprintf(out, size, "%s",
                      one.kernel->method(one, static_cast<sn::Kernel::Part>(part)).c_str());
    });
}

sn_status sn_net_memory(sn_net_bytes* out, sn_net* net) {
    return guard(net, [&](sn::Net& n) { *out = n.memory(); });
}

sn_status sn_net_trim(sn_net* net) {
    return guard(net, [&](sn::Net& n) { n.pages.clear(), n.scratch.clear(); });
}

const char* sn_kernel_type(int number) {
    const auto& all = sn::kernels();
    if (number < 0 || static_cast<size_t>(number) >= all.size()) return nullptr;
    return std::next(all.begin(), number)->first.c_str();
}
