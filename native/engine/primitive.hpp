// Running oneDNN primitives.
#pragma once

#include <unordered_map>
#include <vector>

#include "tensor.hpp"

namespace sn {

using Arguments = std::unordered_map<int, dnnl::memory>;

// What primitives are made with: their temporary memory is the net's, shared by all of them.
// Otherwise each would keep its own, or one of the thread that made it, which another thread
// that runs it has not.
dnnl::primitive_attr attributes();

// Runs a primitive; arguments that are in another layout have been brought into the wanted one.
void run(const dnnl::primitive& primitive, const Arguments& arguments);

// Memory of zeros: notes of a forward pass that a backward pass may read although none was.
dnnl::memory zeroed(const dnnl::memory::desc& desc);

// Memory over values that the caller keeps.
inline dnnl::memory over(std::vector<float>& values) {
    return {plain_desc({static_cast<int64_t>(values.size())}), cpu(), values.data()};
}

}  // namespace sn
