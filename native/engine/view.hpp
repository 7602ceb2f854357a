// oneDNN's objects for memory: making one costs about as much as a small layer, so they are kept.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace sn {

dnnl::engine& cpu();

// One object is equal to itself: the usual case, which needs no comparison of all fields.
inline bool are_same(const dnnl::memory::desc& a, const dnnl::memory::desc& b) {
    return a.get(true) == b.get(true) || a == b;
}

// Values somewhere in memory, as oneDNN takes them; made again when they lie elsewhere.
class View {
   public:
    const dnnl::memory& of(const dnnl::memory::desc& desc, const void* values) {
        if (values != values_ || !is_of(desc)) {
            memory_ = {desc, cpu(), const_cast<void*>(values)};
            desc_ = desc, values_ = values;
        }
        return memory_;
    }
    bool is_of(const dnnl::memory::desc& desc) const { return values_ && are_same(desc_, desc); }

   private:
    dnnl::memory::desc desc_;
    const void* values_ = nullptr;
    dnnl::memory memory_;
};

}  // namespace sn
