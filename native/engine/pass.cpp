#include "pass.hpp"

#include <omp.h>

extern "C" {
#include "../ndarray/threads.h"
}

#include "parallel.hpp"

namespace sn {

namespace {
thread_local int team_now = 0;
thread_local Scratch* scratch_now = nullptr;
thread_local PagePool* pages_now = nullptr;
}  // namespace

int threads() {
    return team_now > 0 ? team_now : sn_team();
}

Scratch& scratch() {
    thread_local Scratch own;
    return scratch_now ? *scratch_now : own;
}

PagePool& pages() {
    thread_local PagePool own;
    return pages_now ? *pages_now : own;
}

// oneDNN takes as many threads as OpenMP says; the caller's own setting returns afterwards.
Team::Team(int threads) : before_(team_now), openmp_before_(omp_get_max_threads()) {
    team_now = threads;
    omp_set_num_threads(threads);
}

Team::~Team() {
    team_now = before_;
    omp_set_num_threads(openmp_before_);
}

Pass::Pass(int team, Scratch& scratch, PagePool& pages)
    : team_(team), scratch_before_(scratch_now), pages_before_(pages_now) {
    scratch_now = &scratch;
    pages_now = &pages;
}

Pass::~Pass() {
    scratch_now = scratch_before_;
    pages_now = pages_before_;
}

}  // namespace sn
