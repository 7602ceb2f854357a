// The engine's memory: zeroed, aligned, counted, in huge pages where it is large.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace sn {

// std::bad_alloc if there is no memory for it (claim.hpp).  Pages that nobody touches cost nothing.
std::shared_ptr<float> take_pages(size_t bytes);

// Pages that the blobs of one net hand to each other: what nobody holds any more, the next one
// takes, so that a pass allocates nothing. What lies in them is left over.
class PagePool {
   public:
    PagePool();
    // At least so many bytes; the last holder, in any thread, lets go of them.
    std::shared_ptr<float> take(size_t bytes);
    // What was let go of may be taken from now on: until then somebody may still read it.
    void turn();
    // Gives the system what nobody holds.
    void clear();
    // Bytes taken from the system, whoever holds them.
    size_t bytes() const { return *taken_; }

   private:
    struct Spare;
    std::shared_ptr<float> take_new(size_t bytes) const;

    std::shared_ptr<Spare> spare_;
    std::shared_ptr<std::atomic<size_t>> taken_;
};

}  // namespace sn
