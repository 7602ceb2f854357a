// The error of predicted boxes and classes against the true ones (SSD's Caffe:
// multibox_loss_layer.cpp).
#include <cfloat>
#include <cmath>

#include "../../engine/parallel.hpp"
#include "box_match.hpp"

namespace sn {

namespace {
enum class Mining { none, max_negative, hard_example };

class MultiBoxLoss final : public Kernel {
   public:
    void reshape(Layer& layer) override {
        const Options& options = layer.options;
        images_ = layer.shape().empty() ? 1 : layer.shape()[0];
        priors_ = options.integer("priors");
        classes_ = options.integer("num_classes");
        sets_ = options.flag("share_location") ? 1 : classes_;
        shared_ = options.flag("share_location");
        background_ = options.integer("background_label_id");
        agnostic_ = options.flag("map_object_to_agnostic");
        use_difficult_ = options.flag("use_difficult_gt");
        match_priors_ = options.flag("use_prior_for_matching");
        inside_ = options.flag("bp_inside");
        plain_ = options.flag("encode_variance_in_target");
        code_ = BoxCode(options.text("code_type"), plain_);
        smooth_ = options.text("loc_loss_type") == "smooth_l1";
        softmax_ = options.text("conf_loss_type") == "softmax";
        matcher_.configure(options.text("match_type") == "per_prediction",
                           options.real32("overlap_threshold"),
                           options.flag("ignore_cross_boundary_bbox"));
        read_mining(options);
        refines_ = options.flag("refines");
        objectness_ = options.real32("objectness_score");
        refined_.resize(static_cast<size_t>(layer.bottoms.size() > 5 ? priors_ * 4 : 0));
        normalization_ = options.text("normalization");
        location_weight_ = options.real("loc_weight");
        location_counts_ = options.flag("loc_counts");
        confidence_counts_ = options.flag("conf_counts");
    }

    void forward(Layer& layer) override {
        const Priors priors(layer.bottom(2), priors_);
        priors.check(layer, code_);
        read_priors(layer, priors);
        read_truths(layer);
        const float *locations = layer.bottom(0), *confidences = layer.bottom(1);
        matches_.clear(), rows_.clear(), labels_.clear();
        if (mining_ == Mining::none) label_all();
        size_t first = 0;
        for (int64_t image = 0; image < images_; ++image) {
            size_t last = first;
            while (last < truths_.size() && truths_[last].image == image) ++last;
            if (last > first)
                match(image, first, last, locations + image * priors_ * sets_ * 4,
                      confidences + image * priors_ * classes_, of_image(layer, image, priors));
            first = last;
        }
        const double found = static_cast<double>(matches_.size());
        normalizer_ = normalization_ == "full"         ? static_cast<double>(images_ * priors_)
                      : normalization_ == "valid"      ? found
                      : normalization_ == "batch_size" ? static_cast<double>(images_)
                                                       : 1.0;
        normalizer_ = std::max(normalizer_, 1.0);
        double loss = 0;
        if (location_counts_) loss += location_weight_ * location_loss();
        if (confidence_counts_) loss += confidence_loss(confidences);
        layer.top()[0] = static_cast<float>(loss / normalizer_);
    }

    void backward(Layer& layer) override {
        const double weight = static_cast<double>(layer.top_diff()[0]) / normalizer_;
        layer.clear_bottom_diffs(0);
        if (layer.propagate[0])
            location_gradient(layer.bottoms[0]->diff.edit(),
                              static_cast<float>(weight * location_weight_));
        if (layer.propagate[1])
            confidence_gradient(layer.bottom(1), layer.bottoms[1]->diff.edit(),
                                static_cast<float>(weight));
    }

   private:
    struct Match {
        int64_t place;  // in units of four values of bottom 0
        Box residual;
    };
    // One prior of one image, and the class that it is to learn.
    struct Label {
        int64_t row, label;
    };

    // RefineDet: the boxes and the scores that the first stage made of the priors.
    Priors of_image(const Layer& layer, int64_t image, const Priors& priors) {
        anchors_ = layer.bottoms.size() > 4 ? layer.bottom(4) + image * priors_ * 2 : nullptr;
        if (refined_.empty()) return priors;
        const Priors found = priors.refined(layer.bottom(5) + image * priors_ * 4, code_, refined_);
        found.check(layer, code_);
        for (int64_t p = 0; p < priors_; ++p) boxes_[static_cast<size_t>(p)] = found.box(p);
        return found;
    }

    // Whether the first stage sees an object here; where it does not nothing is learned.
    bool seen(int64_t p) const { return !anchors_ || anchors_[2 * p + 1] >= objectness_; }

    void read_mining(const Options& options) {
        const std::string& type = options.text("mining_type");
        mining_ = type == "max_negative"   ? Mining::max_negative
                  : type == "hard_example" ? Mining::hard_example
                                           : Mining::none;
        negatives_ = options.real32("neg_pos_ratio");
        negative_overlap_ = options.real32("neg_overlap");
        sample_ = options.integer("sample_size");
        suppresses_ = options.flag("nms") && options.real("nms_threshold") > 0;
        threshold_ = options.real32("nms_threshold");
        top_k_ = options.integer("top_k");
        prior_nms_ = options.flag("use_prior_for_nms");
    }

    void read_priors(const Layer& layer, const Priors& priors) {
        boxes_.resize(static_cast<size_t>(priors_));
        for (int64_t p = 0; p < priors_; ++p) {
            const Box variance = priors.variance(p);
            if (!(variance.xmin > 0 && variance.ymin > 0 && variance.xmax > 0 && variance.ymax > 0))
                layer.refuse("the variances of prior " + std::to_string(p) + " must be positive");
            boxes_[static_cast<size_t>(p)] = priors.box(p);
        }
    }

    // Rows of item, label, instance, four corners, difficult; item -1 fills up.
    void read_truths(const Layer& layer) {
        const float* row = layer.bottom(3);
        truths_.clear();
        for (int64_t t = 0; t < layer.options.integer("truths"); ++t, row += 8) {
            const std::string name = "true box " + std::to_string(t);
            if (std::trunc(row[0]) == -1.0F) continue;
            if (!(row[0] >= 0 && row[0] < static_cast<float>(images_)))
                layer.refuse(name + " is of image " + std::to_string(row[0]) + ": there are " +
                             std::to_string(images_));
            const auto most = agnostic_ || merges() ? 2147483648.0F : static_cast<float>(classes_);
            if (!(row[1] >= 0 && row[1] < most))
                layer.refuse(name + " has the label " + std::to_string(row[1]) + ": there are " +
                             std::to_string(classes_) + " classes");
            const auto label = merges() ? std::min<int64_t>(static_cast<int64_t>(row[1]), 1)
                                        : static_cast<int64_t>(row[1]);
            if (label == background_)
                layer.refuse(name + " has the label of the background, " + std::to_string(label));
            if (!use_difficult_ && row[7] != 0) continue;
            truths_.push_back({static_cast<int64_t>(row[0]), agnostic_ ? background_ + 1 : label,
                               box_at(row + 3)});
        }
        std::stable_sort(truths_.begin(), truths_.end(),
                         [](const Truth& a, const Truth& b) { return a.image < b.image; });
    }

    // The first stage of RefineDet knows objects of one class.
    bool merges() const { return refines_ && classes_ == 2; }

    // Without mining every prior of every image counts.
    void label_all() {
        for (int64_t row = 0; row < images_ * priors_; ++row) {
            rows_.push_back(row);
            if (softmax_) labels_.push_back({row, background_});
        }
    }

    void match(int64_t image, size_t first, size_t last, const float* locations,
               const float* confidences, const Priors& priors) {
        if (match_priors_) matcher_.run(boxes_.data(), priors_, truths_, first, last, -1);
        for (int64_t set = 0; set < sets_; ++set) {
            if (!shared_ && set == background_) continue;
            if (!match_priors_ || suppresses_) decode(locations, set, priors);
            if (!match_priors_)
                matcher_.run(decoded_.data(), priors_, truths_, first, last, shared_ ? -1 : set);
            if (mining_ != Mining::none) mine(image, locations, confidences, priors);
            for (int64_t p = 0; p < priors_; ++p) {
                const int64_t t = matcher_.truth[static_cast<size_t>(p)];
                if (t < 0) continue;
                const Truth& truth = truths_[static_cast<size_t>(t)];
                if (!shared_ && truth.label != set) continue;
                const int64_t place = p * sets_ + set, row = image * priors_ + p;
                matches_.push_back({image * priors_ * sets_ + place,
                                    residual(truth.box, locations + place * 4, p, priors)});
                learn(row, truth.label);
            }
        }
    }

    void learn(int64_t row, int64_t label) {
        if (mining_ != Mining::none) {
            rows_.push_back(row);
            labels_.push_back({row, label});
        } else if (softmax_) {
            labels_[static_cast<size_t>(row)].label = label;
        } else {
            labels_.push_back({row, label});
        }
    }

    void decode(const float* locations, int64_t set, const Priors& priors) {
        decoded_.resize(static_cast<size_t>(priors_));
        for (int64_t p = 0; p < priors_; ++p)
            decoded_[static_cast<size_t>(p)] = code_.decode(
                priors.box(p), priors.variance(p), box_at(locations + (p * sets_ + set) * 4));
    }

    // Predicted minus true offsets.
    Box residual(const Box& truth, const float* offsets, int64_t p, const Priors& priors) const {
        const Box prior = priors.box(p), variance = priors.variance(p);
        const Box predicted = box_at(offsets), wanted = code_.encode(prior, variance, truth);
        Box r = {predicted.xmin - wanted.xmin, predicted.ymin - wanted.ymin,
                 predicted.xmax - wanted.xmax, predicted.ymax - wanted.ymax};
        if (plain_)
            r = {r.xmin / variance.xmin, r.ymin / variance.ymin, r.xmax / variance.xmax,
                 r.ymax / variance.ymax};
        if (!inside_) return r;
        const Box at = match_priors_ ? prior : code_.decode(prior, variance, predicted);
        const auto kept = [](float edge, float value) {
            return edge < 0 || edge > 1 ? 0.0F : value;
        };
        return {kept(at.xmin, r.xmin), kept(at.ymin, r.ymin), kept(at.xmax, r.xmax),
                kept(at.ymax, r.ymax)};
    }

    // ---- Mining: which unmatched priors are to learn the background ------------------------

    void mine(int64_t image, const float* locations, const float* confidences,
              const Priors& priors) {
        std::vector<int64_t>& truth = matcher_.truth;
        const bool hard = mining_ == Mining::hard_example;
        candidates_.clear();
        int64_t positives = 0;
        for (int64_t p = 0; p < priors_; ++p) {
            const int64_t t = truth[static_cast<size_t>(p)];
            positives += t >= 0;
            if (!hard &&
                !(t == unmatched && matcher_.best[static_cast<size_t>(p)] < negative_overlap_))
                continue;
            if (!seen(p)) continue;
            const int64_t label = t < 0 ? background_ : truths_[static_cast<size_t>(t)].label;
            float loss = confidence_loss(confidences + p * classes_, label);
            if (hard && t >= 0)
                loss += location_loss(
                    residual(truths_[static_cast<size_t>(t)].box, locations + p * 4, p, priors));
            candidates_.push_back({std::isnan(loss) ? 0.0F : loss, p});
        }
        const auto all = static_cast<double>(candidates_.size());
        const double most =
            hard ? static_cast<double>(sample_)
                 : static_cast<double>(std::floor(static_cast<float>(positives) * negatives_));
        choose(static_cast<size_t>(std::max(0.0, std::min(most, all))));
        chosen_.assign(static_cast<size_t>(priors_), 0);
        for (const Scored& one : candidates_) chosen_[static_cast<size_t>(one.index)] = 1;
        for (int64_t p = 0; p < priors_; ++p) {
            int64_t& t = truth[static_cast<size_t>(p)];
            const bool chosen = chosen_[static_cast<size_t>(p)];
            if (t == unmatched && chosen) learn(image * priors_ + p, background_);
            if (t >= 0 && hard && !chosen) t = outside;
        }
    }

    // Leaves the worst predictions, at most `count`.
    void choose(size_t count) {
        sort_by_score(candidates_);
        if (suppresses_) {
            const Box* boxes = prior_nms_ ? boxes_.data() : decoded_.data();
            if (top_k_ > -1 && candidates_.size() > static_cast<size_t>(top_k_))
                candidates_.resize(static_cast<size_t>(top_k_));
            candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(),
                                             [boxes](const Scored& one) {
                                                 return area(boxes[one.index]) < 1e-5F;
                                             }),
                              candidates_.end());
            suppress(candidates_, boxes, threshold_, 1);
        }
        if (candidates_.size() > count) candidates_.resize(count);
    }

    // ---- Losses -----------------------------------------------------------------------------

    float location_loss(const Box& r) const {
        const auto one = [this](float x) {
            const float size = std::abs(x);
            return smooth_ && size >= 1 ? size - 0.5F : 0.5F * x * x;
        };
        return one(r.xmin) + one(r.ymin) + one(r.xmax) + one(r.ymax);
    }

    double location_loss() const {
        double sum = 0;
        for (const Match& match : matches_)
            sum += static_cast<double>(location_loss(match.residual));
        return sum;
    }

    // Of one prior; without a label (logistic) every class is wrong.
    float confidence_loss(const float* x, int64_t label) const {
        if (!softmax_) {
            float loss = 0;
            for (int64_t c = 0; c < classes_; ++c) loss += std::max(x[c], 0.0F) + tail(x[c]);
            return label >= 0 ? loss - x[label] : loss;
        }
        const float most = *std::max_element(x, x + classes_);
        float sum = 0;
        for (int64_t c = 0; c < classes_; ++c) sum += std::exp(x[c] - most);
        return -std::log(std::max(std::exp(x[label] - most) / sum, FLT_MIN));
    }

    static float tail(float x) { return std::log1p(std::exp(-std::abs(x))); }

    // Softmax has one label a row; logistic any number, which it takes off what no label costs.
    double confidence_loss(const float* confidences) const {
        const auto count = static_cast<int64_t>(softmax_ ? labels_.size() : rows_.size());
        double sum = parallel_sum(count, classes_ * 16, [&](int64_t i) {
            const auto n = static_cast<size_t>(i);
            const int64_t row = softmax_ ? labels_[n].row : rows_[n];
            return static_cast<double>(
                confidence_loss(confidences + row * classes_, softmax_ ? labels_[n].label : -1));
        });
        if (softmax_) return sum;
        for (const Label& one : labels_)
            sum -= static_cast<double>(confidences[one.row * classes_ + one.label]);
        return sum;
    }

    // As SSD has it, the gradient is that of the offsets after their division by the variances.
    void location_gradient(float* diff, float weight) const {
        const auto slope = [this](float x) {
            return smooth_ ? std::min(std::max(x, -1.0F), 1.0F) : x;
        };
        for (const Match& match : matches_) {
            float* to = diff + match.place * 4;
            to[0] = weight * slope(match.residual.xmin);
            to[1] = weight * slope(match.residual.ymin);
            to[2] = weight * slope(match.residual.xmax);
            to[3] = weight * slope(match.residual.ymax);
        }
    }

    void confidence_gradient(const float* confidences, float* diff, float weight) const {
        parallel_each(static_cast<int64_t>(rows_.size()), classes_ * 16, [&](int64_t i) {
            const int64_t at = rows_[static_cast<size_t>(i)] * classes_;
            probabilities(confidences + at, diff + at, weight);
        });
        for (const Label& one : labels_) diff[one.row * classes_ + one.label] -= weight;
    }

    void probabilities(const float* x, float* to, float weight) const {
        if (!softmax_) {
            for (int64_t c = 0; c < classes_; ++c) to[c] = weight / (1 + std::exp(-x[c]));
            return;
        }
        const float most = *std::max_element(x, x + classes_);
        float sum = 0;
        for (int64_t c = 0; c < classes_; ++c) sum += to[c] = std::exp(x[c] - most);
        for (int64_t c = 0; c < classes_; ++c) to[c] *= weight / sum;
    }

    int64_t images_ = 0, priors_ = 0, classes_ = 0, sets_ = 1, background_ = 0;
    bool shared_ = true, agnostic_ = false, use_difficult_ = true, match_priors_ = true;
    bool refines_ = false;
    float objectness_ = 0;
    const float* anchors_ = nullptr;
    std::vector<float> refined_;
    bool inside_ = false, plain_ = false, smooth_ = true, softmax_ = true;
    bool location_counts_ = true, confidence_counts_ = true;
    Mining mining_ = Mining::none;
    double location_weight_ = 1, normalizer_ = 1;
    float negatives_ = 0, negative_overlap_ = 0, threshold_ = 0;
    int64_t sample_ = 0, top_k_ = -1;
    bool suppresses_ = false, prior_nms_ = false;
    std::string normalization_;
    BoxCode code_;
    BoxMatch matcher_;
    std::vector<Truth> truths_;
    std::vector<Box> boxes_, decoded_;
    std::vector<Match> matches_;
    std::vector<int64_t> rows_;
    std::vector<Label> labels_;
    std::vector<Scored> candidates_;
    std::vector<char> chosen_;
};
}  // namespace

REGISTER_LAYER(MultiBoxLoss, MultiBoxLoss);

}  // namespace sn
