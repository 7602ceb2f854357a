// Boxes as SSD's layers see them: overlap, offsets from a prior, suppression
// (SSD's Caffe: bbox_util.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../../engine/layer.hpp"

namespace sn {

struct Box {
    float xmin, ymin, xmax, ymax;
};

inline Box box_at(const float* values) {
    return {values[0], values[1], values[2], values[3]};
}

// 0 for a box whose corners are swapped.
inline float area(const Box& box) {
    if (box.xmax < box.xmin || box.ymax < box.ymin) return 0;
    return (box.xmax - box.xmin) * (box.ymax - box.ymin);
}

// Intersection over union (Jaccard).
inline float overlap(const Box& a, float area_a, const Box& b, float area_b) {
    const float width = std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin);
    const float height = std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin);
    if (!(width > 0 && height > 0)) return 0;
    const float common = width * height;
    return common / (area_a + area_b - common);
}

// How a box is written as four offsets from a prior.
class BoxCode {
   public:
    // `code`: corner, center_size or corner_size.  With `plain` the offsets are not divided
    // by the prior's variances.
    BoxCode(const std::string& code, bool plain);
    BoxCode() = default;

    Box decode(const Box& prior, const Box& variance, const Box& offsets) const;
    Box encode(const Box& prior, const Box& variance, const Box& box) const;
    // Offsets relative to the prior's size mean nothing where there is none.
    bool needs_size() const { return kind_ != Kind::corner; }

   private:
    enum class Kind { corner, center_size, corner_size };
    Kind kind_ = Kind::corner;
    bool plain_ = false;
};

// The priors of a net: boxes in the first row of the blob, variances in the second.
class Priors {
   public:
    Priors(const float* values, int64_t count)
        : boxes_(values), variances_(values + 4 * count), count_(count) {}
    int64_t size() const { return count_; }
    Box box(int64_t i) const { return box_at(boxes_ + 4 * i); }
    Box variance(int64_t i) const { return box_at(variances_ + 4 * i); }
    // The same with boxes that `offsets`, four for each prior, make of them (RefineDet); they lie
    // in `room`.
    Priors refined(const float* offsets, const BoxCode& code, std::vector<float>& room) const;
    // Refuses priors without a size, where the code needs one.
    void check(const Layer& layer, const BoxCode& code) const;

   private:
    const float *boxes_, *variances_;
    int64_t count_;
};

struct Scored {
    float score;
    int64_t index;
};

// Best first; the smaller index first among equals.
void sort_by_score(std::vector<Scored>& candidates);

// Non-maximum suppression: of candidates in order, those that overlap none that was kept by
// more than a threshold, which shrinks by `eta` while it is above 0.5.  Leaves the kept ones.
void suppress(std::vector<Scored>& candidates, const Box* boxes, float threshold, float eta);

}  // namespace sn
