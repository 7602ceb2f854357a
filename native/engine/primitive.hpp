// Running oneDNN primitives.
#pragma once

#include <utility>
#include <vector>

#include "tensor.hpp"

namespace sn {

// What a primitive reads and writes, by the names of oneDNN's arguments.
class Arguments {
   public:
    using Argument = std::pair<int, dnnl::memory>;

    Arguments() = default;
    Arguments(std::initializer_list<Argument> all) : all_(all) {}
    void add(int name, dnnl::memory memory) { all_.emplace_back(name, std::move(memory)); }
    size_t size() const { return all_.size(); }
    std::vector<Argument>::const_iterator begin() const { return all_.begin(); }
    std::vector<Argument>::const_iterator end() const { return all_.end(); }

   private:
    std::vector<Argument> all_;
};

// The attributes of all primitives: their temporary memory belongs to the net, and all share it.
// Otherwise each primitive would keep its own, or use that of the thread that created it, which
// does not exist in another thread that runs it.
dnnl::primitive_attr attributes();

// Runs a primitive; arguments must be in the layouts that it expects.
void run(const dnnl::primitive& primitive, const Arguments& arguments);

// Memory of zeros, for results that a backward pass may read without a forward pass.
dnnl::memory zeroed(const dnnl::memory::desc& desc);

// Memory over values that the caller owns.
inline dnnl::memory over(std::vector<float>& values) {
    return {plain_desc({static_cast<int64_t>(values.size())}), cpu(), values.data()};
}

}  // namespace sn
