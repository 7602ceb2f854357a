#include "claim.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <new>

namespace sn {

namespace {
std::atomic<size_t> claimed{0};

// The memory of the machine, or of the container that this runs in.
size_t most() {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t bytes =
        pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : SIZE_MAX;
    if (std::FILE* limit = std::fopen("/sys/fs/cgroup/memory.max", "re")) {
        unsigned long long value = 0;
        if (std::fscanf(limit, "%llu", &value) == 1 && value > 0 && value < bytes) bytes = value;
        std::fclose(limit);
    }
    return bytes;
}
}  // namespace

Claim::Claim(size_t bytes) : bytes_(bytes) {
    static const size_t limit = most();
    const size_t before = claimed.fetch_add(bytes);
    if (before <= limit && bytes <= limit - before) return;
    claimed.fetch_sub(bytes);
    throw std::bad_alloc();
}

Claim::~Claim() {
    claimed.fetch_sub(bytes_);
}

}  // namespace sn
