// Finds the true box that each prediction learns (SSD's Caffe: bbox_util.cpp, MatchBBox).
#pragma once

#include <vector>

#include "boxes.hpp"

namespace sn {

struct Truth {
    int64_t image;
    int64_t label;
    Box box;
};

// Stand for a true box where there is none.
constexpr int64_t unmatched = -1;
constexpr int64_t outside = -2;

class BoxMatch {
   public:
    void configure(bool per_prediction, float threshold, bool ignore_outside) {
        per_prediction_ = per_prediction, threshold_ = threshold, ignore_outside_ = ignore_outside;
    }

    // Matches boxes to the true boxes of one image, `first` to `last`; those of one label
    // only, unless `label` is negative.
    void run(const Box* boxes, int64_t count, const std::vector<Truth>& truths, size_t first,
             size_t last, int64_t label);

    // For each box: the number of its true box, `unmatched`, or `outside` (of the image).
    std::vector<int64_t> truth;
    // For each box: its best overlap with any true box.
    std::vector<float> best;

   private:
    struct Pair {
        float overlap;
        int64_t box, truth;
    };

    void find_pairs(const Box* boxes, const std::vector<Truth>& truths, size_t first, size_t last,
                    int64_t label);
    void match_one_to_one(size_t first, size_t last);
    void match_the_rest();

    bool per_prediction_ = true, ignore_outside_ = false;
    float threshold_ = 0;
    std::vector<Pair> pairs_;
    std::vector<size_t> order_;
    std::vector<char> taken_;
};

}  // namespace sn
