#include "scratch.hpp"

#include "pages.hpp"

namespace sn {

void* Scratch::room(size_t bytes) {
    if (bytes <= size_) return memory_.get();
    memory_.reset();
    size_ = 0;
    memory_ = take_pages(bytes);
    size_ = bytes;
    return memory_.get();
}

}  // namespace sn
