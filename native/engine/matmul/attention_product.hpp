// Runs what plan/fuse_attention.cpp found, by blocks of rows whose scores stay in the cache.
#pragma once

#include "../plan/attention.hpp"
#include "attention_loops.hpp"

namespace sn {

class AttentionProduct {
   public:
    void reshape(const Attention& attention, AttentionNumbers numbers);
    // The result as bfloat16 where the blob is `rounded`.
    void run(const Attention& attention, Blob& y);
    // Whether Q, K and V are rounded to bfloat16 in any case.
    bool rounds() const { return loops_ && loops_->takes_rounded(); }

   private:
    int64_t lay_out(AttentionJob& job, float* memory) const;
    void run_units(AttentionJob& job, int64_t begin, int64_t end) const;

    // Of the first values of each matrix in its blob.
    struct Places {
        std::vector<int64_t> q, k, v, y;
        std::vector<std::vector<int64_t>> terms;
    };

    const AttentionLoops* loops_ = nullptr;
    int64_t batches_ = 0, rows_ = 0, columns_ = 0, depth_ = 0, width_ = 0;
    // Rows that are computed together, at most, and how many such blocks a matrix has.
    int64_t block_ = 0, blocks_ = 0;
    Places places_;
};

}  // namespace sn
