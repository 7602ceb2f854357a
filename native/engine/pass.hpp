// What a net lends its layers for one pass: a number of threads, and memory for the moment.
#pragma once

#include <cstddef>
#include <memory>

namespace sn {

// Memory that one primitive after the other uses; it grows to what the greediest needs.
class Scratch {
   public:
    void* room(size_t bytes);
    size_t bytes() const { return size_; }

   private:
    std::shared_ptr<float> memory_;
    size_t size_ = 0;
};

// While it lives, threads() and scratch() in this thread are those of one net.
class Pass {
   public:
    Pass(int team, Scratch& scratch);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    int team_before_, openmp_before_;
    Scratch* scratch_before_;
};

// The scratch memory of the pass that runs in this thread.
Scratch& scratch();

}  // namespace sn
