// The boxes that survive: decoded, thresholded, suppressed class by class, the best kept
// (SSD's Caffe: detection_output_layer.cpp).
#include <cfloat>

#include "../../engine/parallel.hpp"
#include "boxes.hpp"

namespace sn {

namespace {
class DetectionOutput final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        images_ = layer.shape().empty() ? 1 : layer.shape()[0];
        priors_ = options.integer("priors");
        classes_ = options.integer("num_classes");
        shared_ = options.flag("share_location");
        background_ = options.integer("background_label_id");
        code_ = BoxCode(options.text("code_type"), options.flag("variance_encoded_in_target"));
        keep_top_k_ = options.integer("keep_top_k");
        top_k_ = options.integer("top_k");
        least_ =
            static_cast<float>(options.real("confidence_threshold", static_cast<double>(-FLT_MAX)));
        threshold_ = options.real32("nms_threshold");
        eta_ = options.real32("eta");
        objectness_ = layer.bottoms.size() > 3 && options.flag("refines")
                          ? options.real32("objectness_score")
                          : -FLT_MAX;
        refined_.resize(static_cast<size_t>(layer.bottoms.size() > 4 ? priors_ * 4 : 0));
        // Taken here: nothing may fail for want of memory inside a parallel loop.
        boxes_.resize(static_cast<size_t>(priors_ * (shared_ ? 1 : classes_)));
        candidates_.resize(static_cast<size_t>(classes_));
        for (auto& list : candidates_) list.reserve(static_cast<size_t>(priors_));
    }

    void forward(Layer& layer) override {
        const Priors priors(layer.bottom(2), priors_);
        priors.check(layer, code_);
        const float *locations = layer.bottom(0), *confidences = layer.bottom(1);
        rows_.clear();
        for (int64_t image = 0; image < images_; ++image) {
            anchors_ = layer.bottoms.size() > 3 ? layer.bottom(3) + image * priors_ * 2 : nullptr;
            decode(locations + image * static_cast<int64_t>(boxes_.size()) * 4,
                   refined_.empty()
                       ? priors
                       : priors.refined(layer.bottom(4) + image * priors_ * 4, code_, refined_));
            select(confidences + image * priors_ * classes_);
            keep(static_cast<float>(image));
        }
        write(layer);
    }

   private:
    int64_t sets() const { return shared_ ? 1 : classes_; }
    const Box* boxes(int64_t label) const {
        return boxes_.data() + (shared_ ? 0 : label * priors_);
    }

    // Offsets lie prior by prior; decoded boxes class by class.
    void decode(const float* offsets, const Priors& priors) {
        parallel_each(priors_, sets() * 16, [&](int64_t p) {
            for (int64_t c = 0; c < sets(); ++c)
                boxes_[static_cast<size_t>(c * priors_ + p)] = code_.decode(
                    priors.box(p), priors.variance(p), box_at(offsets + (p * sets() + c) * 4));
        });
    }

    void select(const float* scores) {
        parallel_each(classes_, priors_ * 8,
                      [&](int64_t c) { select(scores, c, candidates_[static_cast<size_t>(c)]); });
    }

    void select(const float* scores, int64_t label, std::vector<Scored>& candidates) const {
        candidates.clear();
        if (label == background_) return;
        for (int64_t p = 0; p < priors_; ++p) {
            const float score = seen(p) ? scores[p * classes_ + label] : 0;
            if (score > least_) candidates.push_back({score, p});
        }
        sort_by_score(candidates);
        if (top_k_ > -1 && static_cast<size_t>(top_k_) < candidates.size())
            candidates.resize(static_cast<size_t>(top_k_));
        suppress(candidates, boxes(label), threshold_, eta_);
    }

    // Whether the first stage of RefineDet sees an object here: else it is background for sure.
    bool seen(int64_t p) const {
        return objectness_ == -FLT_MAX || anchors_[2 * p + 1] >= objectness_;
    }

    // Rows of one image, label by label; the best of all labels where there are too many.
    void keep(float image) {
        best_.clear();
        for (int64_t c = 0; c < classes_; ++c)
            for (const Scored& one : candidates_[static_cast<size_t>(c)])
                best_.push_back({one.score, c * priors_ + one.index});
        if (keep_top_k_ > -1 && best_.size() > static_cast<size_t>(keep_top_k_)) {
            const auto by_label = [this](const Scored& a, const Scored& b) {
                return a.index / priors_ < b.index / priors_;
            };
            std::stable_sort(best_.begin(), best_.end(),
                             [](const Scored& a, const Scored& b) { return a.score > b.score; });
            best_.resize(static_cast<size_t>(keep_top_k_));
            std::stable_sort(best_.begin(), best_.end(), by_label);
        }
        for (const Scored& one : best_) {
            const int64_t label = one.index / priors_;
            const Box& box = boxes(label)[one.index % priors_];
            rows_.insert(rows_.end(), {image, static_cast<float>(label), one.score, box.xmin,
                                       box.ymin, box.xmax, box.ymax});
        }
    }

    // Where nothing was found every image has a row of -1.
    void write(Layer& layer) {
        if (rows_.empty())
            for (int64_t image = 0; image < images_; ++image)
                rows_.insert(rows_.end(), {static_cast<float>(image), -1, -1, -1, -1, -1, -1});
        layer.tops[0]->reshape({1, 1, static_cast<int64_t>(rows_.size()) / 7, 7});
        std::copy(rows_.begin(), rows_.end(), layer.top());
    }

    int64_t images_ = 0, priors_ = 0, classes_ = 0, background_ = 0, keep_top_k_ = -1, top_k_ = -1;
    bool shared_ = true;
    float least_ = 0, threshold_ = 0, eta_ = 1, objectness_ = -FLT_MAX;
    const float* anchors_ = nullptr;
    std::vector<float> refined_;
    BoxCode code_;
    std::vector<Box> boxes_;
    std::vector<std::vector<Scored>> candidates_;
    std::vector<Scored> best_;
    std::vector<float> rows_;
};
}  // namespace

REGISTER_LAYER(DetectionOutput, DetectionOutput);

}  // namespace sn
