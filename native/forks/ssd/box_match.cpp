#include "box_match.hpp"

namespace sn {

namespace {
bool leaves_image(const Box& box) {
    const auto off = [](float value) { return value < 0 || value > 1; };
    return off(box.xmin) || off(box.ymin) || off(box.xmax) || off(box.ymax);
}
}  // namespace

void BoxMatch::run(const Box* boxes, int64_t count, const std::vector<Truth>& truths, size_t first,
                   size_t last, int64_t label) {
    truth.assign(static_cast<size_t>(count), unmatched);
    best.assign(static_cast<size_t>(count), 0.0F);
    const auto wanted = [label](const Truth& one) { return label < 0 || one.label == label; };
    const auto begin = truths.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = truths.begin() + static_cast<std::ptrdiff_t>(last);
    if (std::none_of(begin, end, wanted)) return;
    find_pairs(boxes, truths, first, last, label);
    match_one_to_one(first, last);
    if (per_prediction_) match_the_rest();
}

// By box, then by true box.
void BoxMatch::find_pairs(const Box* boxes, const std::vector<Truth>& truths, size_t first,
                          size_t last, int64_t label) {
    pairs_.clear();
    for (size_t i = 0; i < truth.size(); ++i) {
        if (ignore_outside_ && leaves_image(boxes[i])) {
            truth[i] = outside;
            continue;
        }
        const float size = area(boxes[i]);
        for (size_t t = first; t < last; ++t) {
            if (label >= 0 && truths[t].label != label) continue;
            const float common = overlap(boxes[i], size, truths[t].box, area(truths[t].box));
            if (!(common > 1e-6F)) continue;
            best[i] = std::max(best[i], common);
            pairs_.push_back({common, static_cast<int64_t>(i), static_cast<int64_t>(t)});
        }
    }
}

// The best pair first, until one side is used up; among equals the first box, the first truth.
void BoxMatch::match_one_to_one(size_t first, size_t last) {
    order_.resize(pairs_.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::sort(order_.begin(), order_.end(), [this](size_t a, size_t b) {
        return pairs_[a].overlap > pairs_[b].overlap ||
               (pairs_[a].overlap == pairs_[b].overlap && a < b);
    });
    taken_.assign(last - first, 0);
    for (const size_t number : order_) {
        const Pair& pair = pairs_[number];
        char& taken = taken_[static_cast<size_t>(pair.truth) - first];
        int64_t& match = truth[static_cast<size_t>(pair.box)];
        if (taken || match != unmatched) continue;
        taken = 1;
        match = pair.truth;
        best[static_cast<size_t>(pair.box)] = pair.overlap;
    }
}

// Every other box that overlaps a true box enough learns the one that it overlaps most.
void BoxMatch::match_the_rest() {
    for (size_t begin = 0, end = 0; begin < pairs_.size(); begin = end) {
        const auto box = static_cast<size_t>(pairs_[begin].box);
        const Pair* most = nullptr;
        for (; end < pairs_.size() && static_cast<size_t>(pairs_[end].box) == box; ++end) {
            const Pair& pair = pairs_[end];
            if (pair.overlap >= threshold_ && (!most || pair.overlap > most->overlap)) most = &pair;
        }
        if (!most || truth[box] != unmatched) continue;
        truth[box] = most->truth;
        best[box] = most->overlap;
    }
}

}  // namespace sn
