// Numbers of bfloat16 in memory, and loops that are written once for them and for float32: they
// compute in float32 and round once, when they write.
#pragma once

#include <cstdint>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>

namespace sn {

// float32 without its last sixteen bits, rounded to the nearest, to even ones in the middle.
class BFloat16 {
   public:
    BFloat16() = default;
    // Compilers vectorise an assignment, but not a copy of a temporary.
    BFloat16& operator=(float value) {
        uint32_t whole;
        std::memcpy(&whole, &value, sizeof whole);
        const uint32_t rounded = whole + 0x7fffU + ((whole >> 16) & 1U);
        // What is no number stays none.
        const uint32_t kept = (whole & 0x7fffffffU) > 0x7f800000U ? whole | 0x400000U : rounded;
        bits_ = static_cast<uint16_t>(kept >> 16);
        return *this;
    }
    operator float() const {
        const uint32_t whole = static_cast<uint32_t>(bits_) << 16;
        float value;
        std::memcpy(&value, &whole, sizeof value);
        return value;
    }

   private:
    uint16_t bits_;
};

inline bool is_narrow(const dnnl::memory::desc& desc) {
    return desc.get_data_type() == dnnl::memory::data_type::bf16;
}

template <class T>
T* values_of(const dnnl::memory& memory) {
    return static_cast<T*>(memory.get_data_handle());
}

// Calls body with a number of the type that a layout stores: BFloat16 or float.
template <class F>
void typed(const dnnl::memory::desc& desc, F&& body) {
    if (is_narrow(desc))
        body(BFloat16());
    else
        body(float());
}

}  // namespace sn
