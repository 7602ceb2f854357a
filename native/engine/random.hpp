// A counter-based generator: value i of draw n depends on (seed, n, i) alone, so that
// threads may fill a buffer in any order and get the same numbers.
#pragma once

#include <cstdint>

namespace sn {

class Random {
   public:
    explicit Random(uint64_t seed = 0) : seed_(mix(seed ^ 0x9e3779b97f4a7c15ULL)) {}

    // A new stream of values, one for each use.
    class Draw {
       public:
        explicit Draw(uint64_t key) : key_(key) {}
        uint64_t bits(uint64_t i) const { return mix(key_ + i * 0x9e3779b97f4a7c15ULL); }
        // Uniform in [0, 1).
        float uniform(uint64_t i) const { return static_cast<float>(bits(i) >> 40) * 0x1p-24f; }

       private:
        uint64_t key_;
    };
    Draw draw() { return Draw(mix(seed_ + ++draws_)); }
    // The number of streams begun: together with the seed it is the whole state.
    uint64_t draws() const { return draws_; }
    void set_draws(uint64_t draws) { draws_ = draws; }

   private:
    // The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
    static uint64_t mix(uint64_t x) {
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
        return x ^ (x >> 31);
    }

    uint64_t seed_;
    uint64_t draws_ = 0;
};

}  // namespace sn
