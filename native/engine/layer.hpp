// What a layer is to the engine: blobs in, blobs out, parameters, options that
// Python resolved (sparknet/layers/<type>.py), and a kernel that computes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <typeindex>
#include <vector>

#include "plan/attention.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace sn {

// Refusals carry the layer's name to the message; the net adds it.
class Refusal : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
};

struct Blob {
    std::string name;
    Tensor data;
    Tensor diff;
    // Its values are kept after the last layer that reads them: it is an input, an output, or
    // a caller has looked at it.
    bool wanted = false;
    // In nets of eight bits: what the numbers are multiples of when the values are stored so (0 if
    // nobody knows), whether some are below zero, and whether all readers take them so.
    float step = 0;
    bool is_signed = true, may_be_int8 = false;
    // Whether its values may be stored in bfloat16, as all who read them round them to that
    // (plan/rounded_blobs.cpp).
    bool rounded = false;
    // For a parameter: exactly one layer adds to its gradient.
    bool alone = true;
    // For a parameter's gradient, during a pass: it counts as zero, whatever its memory contains.
    bool blank = false;
    // The layers that read it and those that write it, in their order.
    std::vector<Layer*> readers, writers;
    // What each of its records counts for in a loss; nothing: 1 (layers/record_weights.cpp).
    const Blob* weights = nullptr;

    // Makes a blank gradient the zeros that it counts as.
    void clear_blank();
    const Shape& shape() const { return data.shape(); }
    int64_t count() const { return data.count(); }
    void reshape(const Shape& shape) {
        data.reshape(shape);
        diff.reshape(shape);
    }
    void extend(const Shape& shape) {
        data.extend(shape);
        diff.extend(shape);
    }
};

// The blobs on one side of a layer; access to one that does not exist is refused.
class Blobs : public std::vector<Blob*> {
   public:
    using std::vector<Blob*>::vector;
    Blob* operator[](size_t i) const {
        if (i >= size()) throw Refusal("too few blobs");
        return begin()[static_cast<difference_type>(i)];
    }
};

// Values that Python resolved: Plan.values of the layer's shape rule.
class Options {
   public:
    void set(const std::string& key, std::vector<int64_t> values) {
        ints_[key] = std::move(values);
    }
    void set(const std::string& key, std::vector<double> values) {
        reals_[key] = std::move(values);
    }
    void set(const std::string& key, std::string value) { texts_[key] = std::move(value); }
    void clear() { ints_.clear(), reals_.clear(), texts_.clear(); }

    bool has(const std::string& key) const;
    int64_t integer(const std::string& key) const;
    int64_t integer(const std::string& key, int64_t otherwise) const;
    bool flag(const std::string& key) const { return integer(key) != 0; }
    bool flag(const std::string& key, bool otherwise) const { return integer(key, otherwise) != 0; }
    // Reals accept integers too.
    double real(const std::string& key) const;
    double real(const std::string& key, double otherwise) const;
    float real32(const std::string& key) const { return static_cast<float>(real(key)); }
    std::vector<int64_t> integers(const std::string& key) const;
    std::vector<double> reals(const std::string& key) const;
    std::vector<float> reals32(const std::string& key) const;
    const std::string& text(const std::string& key) const;

   private:
    std::map<std::string, std::vector<int64_t>> ints_;
    std::map<std::string, std::vector<double>> reals_;
    std::map<std::string, std::string> texts_;
};

struct Net;
struct Layer;
struct Affine;

// A function of one value, as oneDNN computes it at the end of a pass.
struct Ending {
    dnnl::algorithm algorithm;
    float alpha = 0, beta = 0;
};

// The computation of a layer and the facts about its type, which engine/plan asks for here.
class Kernel {
   public:
    virtual ~Kernel() = default;

    // ---- Facts that follow from the options, also before `reshape`.

    // The layers after this one that forward may compute as well: an in-place ReLU; before that an
    // in-place layer that scales channels; or, in the test phase, whatever is affine, a sum with
    // another blob and a function of each value; or the last two alone.
    enum class Followers { none, relu, scale_and_relu, affine_sum_and_ending, sum_and_ending };
    virtual Followers followers(const Layer&) const { return Followers::none; }
    // Whether y = factor x + shift, with one factor and one shift for each channel that are known
    // before the pass.
    virtual bool is_affine(const Layer&) const { return false; }
    // The function of the layers before an affine layer, followed by that of the layer.
    virtual void fold_into(Affine& before, const Layer& layer) const {
        static_cast<void>(before), static_cast<void>(layer);
    }
    // Whether it multiplies each channel by its first parameter and adds the second, if there is
    // one.
    virtual bool scales_channels(const Layer&) const { return false; }
    // The slope below zero of a ReLU; nothing for any other function.
    virtual std::optional<float> relu_slope(const Layer&) const { return std::nullopt; }
    // The function that it is, if a layer before it may compute that at the end of its pass in the
    // test phase.
    virtual std::optional<Ending> ending(const Layer&) const { return std::nullopt; }
    // Whether a pass computes, with the layers that are fused into this one, `product` behind them.
    virtual bool joins(const Layer& layer, const Layer& product) const {
        static_cast<void>(layer), static_cast<void>(product);
        return false;
    }
    // About how many products of float32, or operations as short, take as long as a forward pass;
    // nothing for a kernel whose loops choose their threads themselves.
    virtual std::optional<double> products(const Layer&) const { return std::nullopt; }
    // Whether it walks through the steps of one stream on one thread (plan/twins.cpp).
    virtual bool walks_alone(const Layer&) const { return false; }
    // Whether its tops are its bottom.
    virtual bool only_splits() const { return false; }
    // With the layers fused into it, of how many pixels of its bottom along each axis it reads one:
    // 1 if it reads all.
    virtual int64_t reads_every(const Layer& layer) const {
        static_cast<void>(layer);
        return 1;
    }
    // Whether images are faster in blocks of sixteen channels around it (plan/channel_blocks.cpp).
    virtual bool prefers_blocks(const Layer&) const { return false; }
    // Whether it rounds the values of a bottom to bfloat16, or leaves them to layers that do.
    virtual bool rounds(const Layer& layer, const Blob& bottom) const {
        static_cast<void>(layer), static_cast<void>(bottom);
        return false;
    }
    // Whether it is the sum of two blobs as they are.
    virtual bool adds_two(const Layer&) const { return false; }
    // Where the values of a top lie in the only bottom, if the layer makes none.
    virtual std::optional<Strided> moves(const Layer& layer, const Blob& top) const {
        static_cast<void>(layer), static_cast<void>(top);
        return std::nullopt;
    }
    // Whether the bottoms are not changed, and the tops have memory of their own.
    virtual bool only_reads() const { return false; }
    // Where backward can find the sign that the gradient of a ReLU before this layer needs.
    enum class Sign { nowhere, in_bottom, in_top };
    virtual Sign sign() const { return Sign::nowhere; }

    // ---- The work.

    // Called when shapes and options are set or have changed: creates primitives, takes scratch
    // memory, and shares blobs that are views of another blob.
    virtual void reshape(Layer& layer) { static_cast<void>(layer); }
    virtual void forward(Layer& layer) = 0;
    // Writes the diff of every bottom i with layer.propagate[i]; adds to the diff of every
    // parameter i with layer.learns[i].
    virtual void backward(Layer& layer) { static_cast<void>(layer); }
    // Whether backward reads the values of a bottom or top: the net keeps a copy of those that a
    // layer in place overwrites before (plan/backups.cpp), and frees the others when no layer reads
    // them again.  A layer in place sees what it says: its input, or its result.
    enum class Role { bottom, top };
    virtual bool looks_back(const Layer& layer, Role role, size_t number) const {
        static_cast<void>(layer), static_cast<void>(role), static_cast<void>(number);
        return true;
    }
    // Whether, in place, a value stays above zero, or not, wherever its gradient is not zero: a
    // ReLU before it needs no copy.
    virtual bool leaves_signs(const Layer&) const { return false; }
    // Whether a kernel for other shapes is kept beside this one, as nothing but shapes decides what
    // it is, and it shares no blobs.
    virtual bool stays_beside_others(const Layer&) const { return false; }
    // Which loops compute a part of the work, and why, for people; empty where there is one way.
    enum class Part { forward, data, weights };
    virtual std::string method(const Layer& layer, Part part) const {
        static_cast<void>(layer), static_cast<void>(part);
        return {};
    }
    // Whether forward computes the layers up to fused_last too, when the pass reaches them.
    virtual bool fuses() const { return false; }
    // Whether backward does, after such a forward.
    virtual bool fuses_backward() const { return false; }
    // Whether backward may pass its gradient on through an in-place ReLU that lies before it.
    virtual bool gates(const Layer& layer) const {
        static_cast<void>(layer);
        return false;
    }
};

// A kernel whose gradients depend on no values: backward reads neither bottoms nor tops.
class LinearKernel : public Kernel {
   public:
    bool looks_back(const Layer&, Role, size_t) const override { return false; }
};

// A kernel whose backward reads the bottoms' values, and no top's.
class BottomKernel : public Kernel {
   public:
    bool looks_back(const Layer&, Role role, size_t) const override { return role == Role::bottom; }
};

// Values of a blob that backward reads, and that a layer in place overwrites before.
struct Backup {
    Blob* blob = nullptr;
    // Whether they are a bottom's, as they are before the forward pass, or a top's, as it is then.
    bool is_input = false;
    bool is_taken = false;
    Tensor values = {};
};

struct Layer {
    size_t index = 0;
    std::string name;
    std::string type;
    bool train = true;
    Options options;
    Blobs bottoms;
    Blobs tops;
    Blobs params;
    std::vector<bool> propagate;      // per bottom
    std::vector<bool> learns;         // per parameter
    std::vector<float> loss_weights;  // per top
    bool backward = false;
    // Whether a backward pass may follow a forward one.
    bool has_gradients() const { return train || backward; }
    // Whether it multiplies numbers of eight bits; an attention, what it rounds to them itself, or
    // bfloat16 where the processor has no products of bytes.
    bool int8 = false;
    // What eight bits then add to the bias of each output; nothing: no correction.
    std::vector<float> int8_bias;
    // How many products of float32 take as long as so many of the numbers that it multiplies.
    double in_float32(double products) const;
    // Whether it has so little to do that waking a second thread would take longer.
    bool alone = false;
    // Layers that follow and may be computed together with this one, and the last of them.
    Layer *fused_scale = nullptr, *fused_relu = nullptr, *fused_last = nullptr;
    // Behind a convolution in the test phase: layers that multiply and shift channels, the sum
    // with another blob, and a function that is not a ReLU.
    std::vector<Layer*> fused_affine;
    std::optional<Ending> fused_ending;
    Layer* fused_sum = nullptr;
    Blob* fused_other = nullptr;
    // Behind all that: a convolution that is computed with this one, and what is fused into that.
    Layer* fused_product = nullptr;
    // Of the last product of an attention: what it computes with the layers before it.
    std::shared_ptr<const Attention> attention;
    // With the layers fused into it, of how many pixels along each axis it computes one, and of
    // how many its bottom may have one: readers skip the others (plan/skip_pixels.cpp).
    int64_t top_every = 1, bottom_every = 1;
    std::vector<Layer*> skipping_readers;
    // Another layer that walks through its steps at the same time, on another thread; the first of
    // both waits for the second in a pass that comes to it.
    Layer* twin = nullptr;
    bool waits = false;
    std::vector<Backup> backups;
    const Backup* find_backup(const Blob& blob) const {
        for (const Backup& backup : backups)
            if (backup.blob == &blob) return &backup;
        return nullptr;
    }
    // The layer that computes this one together with itself when all of them run.
    Layer* fused_into = nullptr;
    // Whether the last forward pass computed them together.
    bool fused = false;
    // The in-place ReLU before this layer, and whether this backward pass computes its gradient
    // too.
    const Layer* gate = nullptr;
    bool gated = false;
    // Whether this forward pass repeats the last one: what was derived from its input holds.
    bool repeats = false;
    Net* net = nullptr;
    Random random;
    std::unique_ptr<Kernel> kernel;
    // The shapes of bottoms, tops and parameters that the kernel was prepared for; empty
    // if it is not prepared.
    std::optional<std::vector<Shape>> prepared;
    // Kernels for other shapes, the oldest first: batches of a few sizes take turns.
    std::vector<std::pair<std::vector<Shape>, std::unique_ptr<Kernel>>> shelf;

    void note_shapes();
    // Puts the kernel on the shelf, where that is allowed, and another in its place; whether that
    // one is prepared for the shapes of now.
    bool exchange_kernel();
    // Drops all kernels for other reasons than shapes.
    void forget() { prepared.reset(), shelf.clear(), packs_.clear(); }
    // Weights that kernels for several shapes use: one object for each layout and variant.
    template <class T>
    std::shared_ptr<T> pack(const dnnl::memory::desc& layout, int variant) const;
    // The changes of shapes that any tensors had undergone when this layer was last found ready.
    mutable uint64_t ready_at = 0;
    // A kernel that runs on other shapes than it was prepared for would write outside its blobs.
    bool is_ready() const;
    void check_ready() const;
    bool in_place(size_t bottom = 0, size_t top = 0) const { return bottoms[bottom] == tops[top]; }
    const Shape& shape(size_t bottom = 0) const { return bottoms[bottom]->shape(); }
    // Plain rows.
    const float* bottom(size_t i = 0) const { return bottoms[i]->data.read(); }
    float* top(size_t i = 0) const { return tops[i]->data.write(); }
    const float* top_diff(size_t i = 0) const { return tops[i]->diff.read(); }
    float* bottom_diff(size_t i = 0) const { return bottoms[i]->diff.write(); }
    // Sets the gradients of the bottoms from `first` on to zero, those that are asked for.
    void clear_bottom_diffs(size_t first) const;
    const float* param(size_t i) const { return params[i]->data.read(); }
    // A gradient to add to.
    float* param_diff(size_t i) const {
        params[i]->clear_blank();
        return params[i]->diff.edit();
    }
    // A gradient that may be overwritten instead of added to, if `adds` is false.
    float* param_diff(size_t i, bool& adds) const {
        adds = !params[i]->blank;
        params[i]->blank = false;
        return params[i]->diff.edit();
    }
    [[noreturn]] void refuse(const std::string& message) const { throw Refusal(message); }

   private:
    struct Pack {
        std::type_index type;
        dnnl::memory::desc layout;
        int variant;
        std::weak_ptr<void> weights;
    };
    mutable std::vector<Pack> packs_;
};

template <class T>
std::shared_ptr<T> Layer::pack(const dnnl::memory::desc& layout, int variant) const {
    for (const Pack& pack : packs_)
        if (pack.type == typeid(T) && pack.variant == variant && pack.layout == layout)
            if (auto weights = pack.weights.lock()) return std::static_pointer_cast<T>(weights);
    auto weights = std::make_shared<T>();
    packs_.push_back({typeid(T), layout, variant, weights});
    return weights;
}

// For a kernel that moves values: whether all layers behind it round them.
inline bool leaves_to_rounding(const Layer& layer) {
    return std::all_of(layer.tops.begin(), layer.tops.end(),
                       [](const Blob* top) { return top->rounded; });
}

template <class K>
std::unique_ptr<Kernel> make() {
    return std::make_unique<K>();
}

// The kernel of a type; preparing a type that has none is refused.
std::unique_ptr<Kernel> make_kernel(const std::string& type);

using Factory = std::unique_ptr<Kernel> (*)();

// The kernels by layer type; REGISTER_LAYER puts them there when the library is loaded.
std::map<std::string, Factory>& kernels();

// Stands in the file of a kernel, outside of its anonymous namespace: two kernels of one type do
// not link.
#define REGISTER_LAYER(type, ...)        \
    extern const bool has_kernel_##type; \
    const bool has_kernel_##type = kernels().emplace(#type, make<__VA_ARGS__>).second

}  // namespace sn
