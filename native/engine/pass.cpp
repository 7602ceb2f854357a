#include "pass.hpp"

#include <omp.h>

#include <cstdint>
#include <cstdlib>
#include <new>

extern "C" {
#include "../ndarray/threads.h"
}

#include "parallel.hpp"

namespace sn {

namespace {
thread_local int team_now = 0;
thread_local Scratch* scratch_now = nullptr;
}  // namespace

int threads() {
    return team_now > 0 ? team_now : sn_team();
}

Scratch& scratch() {
    thread_local Scratch own;
    return scratch_now ? *scratch_now : own;
}

void* Scratch::room(size_t bytes) {
    if (bytes <= size_) return memory_.get();
    memory_.reset();
    claim_.reset();
    size_ = 0;
    const size_t whole = (bytes + 4095) / 4096 * 4096;
    claim_.emplace(whole);
    void* raw = std::aligned_alloc(4096, whole);
    if (!raw) {
        claim_.reset();
        throw std::bad_alloc();
    }
    memory_ = std::shared_ptr<void>(raw, std::free);
    size_ = whole;
    return raw;
}

// oneDNN takes as many threads as OpenMP says; the caller's own setting returns afterwards.
Pass::Pass(int team, Scratch& scratch)
    : team_before_(team_now), openmp_before_(omp_get_max_threads()), scratch_before_(scratch_now) {
    team_now = team;
    scratch_now = &scratch;
    omp_set_num_threads(team);
}

Pass::~Pass() {
    team_now = team_before_;
    scratch_now = scratch_before_;
    omp_set_num_threads(openmp_before_);
}

}  // namespace sn
