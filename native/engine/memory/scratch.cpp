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

const dnnl::memory& Scratch::memory(size_t bytes) {
    const void* values = room(bytes);
    const size_t described = desc_.is_zero() ? 0 : desc_.get_size();
    if (described != size_)
        desc_ = {{static_cast<int64_t>(size_)},
                 dnnl::memory::data_type::u8,
                 dnnl::memory::format_tag::x};
    return view_.of(desc_, values);
}

}  // namespace sn
