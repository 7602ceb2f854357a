// Temporary memory that primitives use one after the other; it grows to the largest request.
#pragma once

#include <cstddef>
#include <memory>

#include "../view.hpp"

namespace sn {

class Scratch {
   public:
    void* room(size_t bytes);
    // The same for a primitive: room for so many bytes or more.
    const dnnl::memory& memory(size_t bytes);
    size_t bytes() const { return size_; }
    void clear() { memory_.reset(), size_ = 0; }

   private:
    std::shared_ptr<float> memory_;
    size_t size_ = 0;
    dnnl::memory::desc desc_;
    View view_;
};

}  // namespace sn
