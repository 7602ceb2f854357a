// What a net gives its layers for one pass: a number of threads, and temporary memory.
#pragma once

#include "memory/pages.hpp"
#include "memory/scratch.hpp"

namespace sn {

// While it exists, this thread's team has so many threads, for our loops and for oneDNN's.
class Team {
   public:
    explicit Team(int threads);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

   private:
    int before_, openmp_before_;
};

// While it exists, threads(), scratch() and pages() in this thread are those of one net.
class Pass {
   public:
    Pass(int team, Scratch& scratch, PagePool& pages);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    Team team_;
    Scratch* scratch_before_;
    PagePool* pages_before_;
};

// The scratch memory of the pass that runs in this thread.
Scratch& scratch();

// Pages for blobs: those of the net that this thread runs.
PagePool& pages();

}  // namespace sn
