#include <algorithm>

#include "boxes.hpp"

namespace sn {

void sort_by_score(std::vector<Scored>& candidates) {
    std::sort(candidates.begin(), candidates.end(), [](const Scored& a, const Scored& b) {
        return a.score > b.score || (a.score == b.score && a.index < b.index);
    });
}

void suppress(std::vector<Scored>& candidates, const Box* boxes, float threshold, float eta) {
    size_t kept = 0;
    for (const Scored candidate : candidates) {
        const Box& box = boxes[candidate.index];
        const float size = area(box);
        bool keep = true;
        for (size_t k = 0; keep && k < kept; ++k) {
            const Box& other = boxes[candidates[k].index];
            keep = overlap(box, size, other, area(other)) <= threshold;
        }
        if (!keep) continue;
        candidates[kept++] = candidate;
        if (eta < 1 && threshold > 0.5F) threshold *= eta;
    }
    candidates.resize(kept);
}

}  // namespace sn
