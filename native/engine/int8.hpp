// Rounding to eight bits.
#pragma once

#include <cstdint>
#include <vector>

#include "layer.hpp"

namespace sn {

// Calls body with a number of the type that a layout of eight bits stores.
template <class F>
void typed_bytes(const dnnl::memory::desc& desc, F&& body) {
    if (desc.get_data_type() == dnnl::memory::data_type::s8)
        body(int8_t());
    else
        body(uint8_t());
}

inline dnnl::memory::data_type int8_type(bool is_signed) {
    return is_signed ? dnnl::memory::data_type::s8 : dnnl::memory::data_type::u8;
}

// Each row in multiples of a step of its own, at most 127 of them; `steps` are set.
std::vector<int8_t> round_rows(const float* values, int64_t rows, int64_t columns,
                               std::vector<float>& steps);

// Whether a layer may store its top in eight bits: steps are known for the values that a blob has
// in the end.
bool may_store_int8(const Layer& layer);

}  // namespace sn
