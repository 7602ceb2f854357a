// Running oneDNN primitives.
#pragma once

#include <unordered_map>

#include "tensor.hpp"

namespace sn {

using Arguments = std::unordered_map<int, dnnl::memory>;

// Runs a primitive; arguments that are in another layout have been brought into the wanted one.
inline void run(const dnnl::primitive& primitive, const Arguments& arguments) {
    primitive.execute(stream(), arguments);
    stream().wait();
}

// Memory over values that the caller keeps.
inline dnnl::memory over(std::vector<float>& values) {
    return {plain_desc({static_cast<int64_t>(values.size())}), cpu(), values.data()};
}

}  // namespace sn
