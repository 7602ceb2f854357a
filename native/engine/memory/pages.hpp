// The engine's memory: zeroed, aligned, counted, in huge pages where it is large.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace sn {

// std::bad_alloc if there is no memory for it (claim.hpp).  Pages that nobody touches cost nothing.
std::shared_ptr<float> take_pages(size_t bytes);

// Pages that the blobs of one net reuse: a page that no blob holds goes to the next blob, so that
// a pass allocates nothing. A reused page contains old values.
class PagePool {
   public:
    PagePool();
    // At least so many bytes; they return when the last holder, in any thread, releases them.
    std::shared_ptr<float> take(size_t bytes);
    // Released pages may be reused from now on: before this call somebody may still read them.
    void turn();
    // Returns unused pages to the system.
    void clear();
    // Bytes taken from the system, used or not.
    size_t bytes() const { return *taken_; }

   private:
    struct Spare;
    std::shared_ptr<float> take_new(size_t bytes) const;

    std::shared_ptr<Spare> spare_;
    std::shared_ptr<std::atomic<size_t>> taken_;
};

}  // namespace sn
