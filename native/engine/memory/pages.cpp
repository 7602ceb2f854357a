#include "pages.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include "claim.hpp"

namespace sn {

namespace {
constexpr size_t line = 64, page = 4096, huge = size_t{1} << 21;

std::shared_ptr<float> take_block(size_t bytes) {
    auto claim = std::make_shared<Claim>(bytes);
    // calloc aligns to less than a cache line: a line for that, and one that oneDNN may read, whose
    // kernels take whole vectors.
    void* raw = std::calloc(1, bytes + 2 * line);
    if (!raw) throw std::bad_alloc();
    const auto aligned = (reinterpret_cast<uintptr_t>(raw) + line - 1) / line * line;
    return {reinterpret_cast<float*>(aligned), [raw, claim](float*) { std::free(raw); }};
}
}  // namespace

std::shared_ptr<float> take_pages(size_t bytes) {
    if (bytes < huge) return take_block(bytes);
    if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
    const size_t whole = (bytes + page - 1) / page * page;
    auto claim = std::make_shared<Claim>(whole);
    // Only ranges that begin at the border of a huge page become huge pages.
    void* raw =
        mmap(nullptr, whole + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) throw std::bad_alloc();
    const auto begin = reinterpret_cast<uintptr_t>(raw);
    const auto aligned = (begin + huge - 1) / huge * huge;
#ifdef MADV_HUGEPAGE
    madvise(reinterpret_cast<void*>(aligned), whole, MADV_HUGEPAGE);
#endif
    return {reinterpret_cast<float*>(aligned),
            [raw, whole, claim](float*) { munmap(raw, whole + huge); }};
}

struct PagePool::Spare {
    using Pages = std::multimap<size_t, std::shared_ptr<float>>;
    std::mutex lock;
    Pages pages, let_go;

    // Pages of twice the size or more stay for larger blobs.
    std::shared_ptr<float> find(size_t& bytes) {
        const std::lock_guard<std::mutex> held(lock);
        const auto found = pages.lower_bound(bytes);
        if (found == pages.end() || found->first / 2 > bytes) {
            // Where blobs grow, larger pages replace smaller ones.
            if (found != pages.begin()) pages.erase(std::prev(found));
            return nullptr;
        }
        bytes = found->first;
        auto taken = std::move(found->second);
        pages.erase(found);
        return taken;
    }
    void put(size_t bytes, const std::shared_ptr<float>& back) noexcept {
        const std::lock_guard<std::mutex> held(lock);
        try {
            let_go.emplace(bytes, back);
        } catch (const std::bad_alloc&) {
            // Without memory to note them, they return to the system.
        }
    }
};

PagePool::PagePool()
    : spare_(std::make_shared<Spare>()), taken_(std::make_shared<std::atomic<size_t>>(0)) {}

std::shared_ptr<float> PagePool::take_new(size_t bytes) const {
    auto pages = take_pages(bytes);
    *taken_ += bytes;
    float* first = pages.get();
    return {first, [pages = std::move(pages), bytes, taken = taken_](float*) { *taken -= bytes; }};
}

std::shared_ptr<float> PagePool::take(size_t bytes) {
    auto pages = spare_->find(bytes);
    if (!pages) pages = take_new(bytes);
    float* first = pages.get();
    return {first, [pages, bytes, spare = spare_](float*) { spare->put(bytes, pages); }};
}

void PagePool::turn() {
    const std::lock_guard<std::mutex> held(spare_->lock);
    spare_->pages.merge(spare_->let_go);
}

void PagePool::clear() {
    const std::lock_guard<std::mutex> held(spare_->lock);
    spare_->pages.clear();
    spare_->let_go.clear();
}

}  // namespace sn
