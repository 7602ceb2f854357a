// Counts the bytes of the engine's blobs, so that a net too large for the machine is refused
// before the system kills the process.
#pragma once

#include <cstddef>

namespace sn {

// Counts so many bytes while it exists.
class Claim {
   public:
    // std::bad_alloc if all claims together would exceed the machine's memory.
    explicit Claim(size_t bytes);
    ~Claim();
    Claim(Claim&& other) noexcept : bytes_(other.bytes_) { other.bytes_ = 0; }
    Claim& operator=(Claim&& other) noexcept {
        const size_t mine = bytes_;
        bytes_ = other.bytes_;
        other.bytes_ = mine;
        return *this;
    }

    size_t bytes() const { return bytes_; }

   private:
    size_t bytes_;
};

}  // namespace sn
