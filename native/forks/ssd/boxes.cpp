#include "boxes.hpp"

#include <cmath>

namespace sn {

namespace {
struct Centered {
    float x, y, width, height;
};

Centered centered(const Box& box) {
    return {(box.xmin + box.xmax) / 2, (box.ymin + box.ymax) / 2, box.xmax - box.xmin,
            box.ymax - box.ymin};
}
}  // namespace

BoxCode::BoxCode(const std::string& code, bool plain) : plain_(plain) {
    if (code == "center_size")
        kind_ = Kind::center_size;
    else if (code == "corner_size")
        kind_ = Kind::corner_size;
}

Box BoxCode::decode(const Box& prior, const Box& variance, const Box& offsets) const {
    Box o = offsets;
    if (!plain_)
        o = {variance.xmin * o.xmin, variance.ymin * o.ymin, variance.xmax * o.xmax,
             variance.ymax * o.ymax};
    const Centered p = centered(prior);
    switch (kind_) {
        case Kind::corner:
            return {prior.xmin + o.xmin, prior.ymin + o.ymin, prior.xmax + o.xmax,
                    prior.ymax + o.ymax};
        case Kind::corner_size:
            return {prior.xmin + o.xmin * p.width, prior.ymin + o.ymin * p.height,
                    prior.xmax + o.xmax * p.width, prior.ymax + o.ymax * p.height};
        case Kind::center_size:
            break;
    }
    const float x = o.xmin * p.width + p.x, y = o.ymin * p.height + p.y;
    const float width = std::exp(o.xmax) * p.width, height = std::exp(o.ymax) * p.height;
    return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

Box BoxCode::encode(const Box& prior, const Box& variance, const Box& box) const {
    const Centered p = centered(prior);
    Box o{};
    if (kind_ == Kind::center_size) {
        const Centered b = centered(box);
        o = {(b.x - p.x) / p.width, (b.y - p.y) / p.height, std::log(b.width / p.width),
             std::log(b.height / p.height)};
    } else {
        const bool sized = kind_ == Kind::corner_size;
        const float width = sized ? p.width : 1, height = sized ? p.height : 1;
        o = {(box.xmin - prior.xmin) / width, (box.ymin - prior.ymin) / height,
             (box.xmax - prior.xmax) / width, (box.ymax - prior.ymax) / height};
    }
    if (plain_) return o;
    return {o.xmin / variance.xmin, o.ymin / variance.ymin, o.xmax / variance.xmax,
            o.ymax / variance.ymax};
}

void Priors::check(const Layer& layer, const BoxCode& code) const {
    if (!code.needs_size()) return;
    for (int64_t i = 0; i < count_; ++i) {
        const Centered prior = centered(box(i));
        if (!(prior.width > 0 && prior.height > 0))
            layer.refuse("prior " + std::to_string(i) + " must have a positive size; it is " +
                         std::to_string(prior.width) + " wide and " + std::to_string(prior.height) +
                         " high");
    }
}

Priors Priors::refined(const float* offsets, const BoxCode& code, std::vector<float>& room) const {
    for (int64_t i = 0; i < count_; ++i) {
        const Box one = code.decode(box(i), variance(i), box_at(offsets + 4 * i));
        const float values[] = {one.xmin, one.ymin, one.xmax, one.ymax};
        std::copy_n(values, 4, room.data() + 4 * i);
    }
    Priors found = *this;
    found.boxes_ = room.data();
    return found;
}

}  // namespace sn
