// A net as the engine runs it: blobs, layers in order, one native call per pass.
#pragma once

#include <sparknet/net.h>

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "layer.hpp"
#include "pass.hpp"

namespace sn {

struct Net {
    bool train = true;
    // The type of products and convolutions; weights, their gradients and sums are float32.
    dnnl::memory::data_type factors = dnnl::memory::data_type::f32;
    bool narrow() const { return factors != dnnl::memory::data_type::f32; }
    // Whether blobs keep their values and gradients after the passes.  If not, a blob keeps them
    // until its last reader is done, and only nets for training have a backward
    // pass.
    bool keeps_blobs = true;
    uint64_t seed = 0;
    // Deques: addresses stay valid when elements are added.
    std::deque<Blob> blobs;
    std::deque<Blob> params;
    std::deque<Layer> layers;

    Blob& add_blob(const std::string& name);
    Blob& add_param(const Shape& shape, std::shared_ptr<const sn_array> data,
                    std::shared_ptr<const sn_array> diff);
    Layer& add_layer(const std::string& type, const std::string& name, const Blobs& bottoms,
                     const Blobs& tops, const Blobs& own);

    // Builds or rebuilds the kernels of layers first … last for the shapes that are set.
    void prepare(size_t first, size_t last);
    // Layers first … last, in order; the sum of weighted losses.
    double forward(size_t first, size_t last);
    // Layers first down to last.  `overwrite`: the gradients of all parameters count as
    // zero before.
    void backward(size_t first, size_t last, bool overwrite);

    void reseed(uint64_t from);

    // Whether a layer is the last one that reads a blob's values.
    bool is_last_reader(const Layer& layer, const Blob& blob) const;

    // Whether images are kept in blocks of sixteen channels where a layer can choose
    // (plan/channel_blocks.cpp).
    bool blocks_channels() const;

    // Keeps a blob's values from the next pass on.
    void want(Blob& blob);

    // Starts the layers' clocks from 0, or stops them.
    void time(bool on);
    // Nanoseconds a layer, since the clocks were started.
    std::vector<double> forward_ns, backward_ns;

    Scratch scratch;
    PagePool pages;

    // The layer that is running, for the message of an error in it.
    size_t running = 0;

    sn_net_bytes memory() const;

   private:
    void gather_threads();
    void make_ready(Layer& layer);
    double forward_layers(size_t first, size_t last);
    // plan/fuse_into_convolution.cpp
    bool is_hidden(const Blob& blob) const;
    bool goes_on(const Layer& before, const Layer& layer) const;
    bool can_add(const Layer& head, const Layer& before, const Layer& sum) const;
    void fuse_inference(Layer& head);
    void fuse_product(Layer& head);
    // plan/fuse_attention.cpp
    bool are_hidden(const Layer& head, const std::set<Layer*>& members,
                    std::set<Layer*>& barred) const;
    void fuse_attention(Layer& head);
    // plan/skip_pixels.cpp
    bool find_readers(const Layer& head, const Blob& blob, std::vector<Layer*>& found);
    void skip_pixels(Layer& head);
    void find_skips();
    bool may_skip(const Layer& head, size_t last) const;
    // plan/fuse_train.cpp
    void fuse_train(Layer& head, bool scale_too);
    // plan/fusions.cpp
    Layer* next(const Layer& layer);
    void find_fusions();
    void follow_wants();
    void follow_fusions();
    bool are_ready(const Layer& head) const;
    void choose_fusions(size_t first, size_t last);
    void split_fusions(size_t first, size_t last);
    void unfuse(Layer& head);
    // plan/fuse_relu_backward.cpp
    void find_gates();
    void choose_gates(size_t first, size_t last);
    bool is_fused(const Layer& layer, size_t first) const;
    bool is_passed(const Layer& layer, size_t last);
    void settle();
    // plan/rounded_blobs.cpp
    void find_rounded();
    // plan/twins.cpp
    void find_twins();
    void choose_twins(size_t first, size_t last);
    // plan/backups.cpp
    void find_backups();
    static void take_backups(Layer& layer, bool inputs);
    static void run_forward(Layer& layer);
    // plan/blob_lifetimes.cpp
    using Storages = std::map<std::shared_ptr<Storage>, size_t>;
    void find_last_readers();
    Storages read_last() const;
    Storages looked_at_last() const;
    Storages passed_last() const;
    void check_bottoms(const Layer& layer) const;
    void check_gradients(const Layer& layer) const;
    void give_back_read(const Layer& layer);
    void give_back_passed(Layer& layer);
    template <class F>
    void guarded(Layer& layer, F&& run);
    template <class F>
    void settled(F&& run);

    // By layer: the blobs that nobody reads after its forward pass, and after its backward pass.
    std::vector<std::vector<std::shared_ptr<Storage>>> last_read_, last_passed_;
    // A caller wants to keep another blob than before.
    bool wants_changed_ = false;

    // A parameter of each gradient.
    std::unordered_map<const float*, Blob*> gradients_;
    // What blocks_channels() has found in this pass.
    mutable std::optional<bool> blocks_channels_;

    bool timed_ = false;
    int threads_ = 0;
};

// An error inside a layer becomes a refusal of that layer, unless memory ran out.
template <class F>
inline void Net::guarded(Layer& layer, F&& run) {
    running = layer.index;
    pages.turn();
    std::optional<Team> team;
    if (layer.alone) team.emplace(1);
    try {
        run();
    } catch (const Refusal& refusal) {
        throw Refusal(layer.type + ": " + refusal.what());
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const dnnl::error& error) {
        if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
        throw Refusal(layer.type + ": " + error.what());
    } catch (const std::exception& error) {
        throw Refusal(layer.type + ": " + error.what());
    }
}

}  // namespace sn
