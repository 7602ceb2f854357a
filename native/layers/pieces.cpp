#include "pieces.hpp"

#include "../engine/primitive.hpp"
#include "rows.hpp"

namespace sn {

using dnnl::memory;

void Pieces::reshape(const Shape& whole, const std::vector<Shape>& parts, size_t axis) {
    whole_ = whole, parts_ = parts, axis_ = axis;
    outer_ = count(whole, 0, axis);
    inner_ = count(whole, axis + 1, whole.size());
    offsets_.assign(parts.size(), Shape(whole.size(), 0));
    for (size_t i = 1; i < parts.size(); ++i)
        offsets_[i][axis] = offsets_[i - 1][axis] + parts[i - 1][axis];
    layouts_.clear();
    cuts_.assign(parts.size(), {});
}

// The part of a blocked whole where part i lies; empty where it begins or ends inside a block.
memory::desc Pieces::window(const memory::desc& whole, size_t i) const {
    const auto part = whole.submemory_desc(parts_[i], offsets_[i], true);
    return part ? part : memory::desc();
}

// One primitive for these layouts; none (an empty target) where plain rows are faster.
void Pieces::make(const std::vector<memory::desc>& layouts) {
    layouts_ = layouts;
    sources_.clear();
    target_ = {};
    std::optional<memory::desc> target;
    for (size_t i = 0; i < layouts.size() && !target; ++i) target = alike(layouts[i], whole_);
    if (!target) return;
    for (size_t i = 0; i < layouts.size(); ++i) {
        if (count(parts_[i]) == 0) return;
        if (window(*target, i).is_zero()) return;
    }
    sources_ = layouts;
    target_ = *target;
    concat_ = dnnl::concat(dnnl::concat::primitive_desc(cpu(), target_, static_cast<int>(axis_),
                                                        sources_, attributes()));
}

namespace {
// The layout of the newest values; in float32 unless all are bfloat16.
std::vector<memory::desc> layouts_of(const std::vector<Tensor*>& parts) {
    std::vector<memory::desc> found;
    bool narrow = true;
    for (const Tensor* part : parts) {
        found.push_back(part->newest());
        narrow = narrow && found.back().get_data_type() != memory::data_type::f32;
    }
    if (!narrow)
        for (size_t i = 0; i < parts.size(); ++i) found[i] = parts[i]->layout();
    return found;
}
}  // namespace

bool Pieces::join_blocked(const std::vector<Tensor*>& parts, Tensor& whole) {
    const auto layouts = layouts_of(parts);
    if (layouts != layouts_) make(layouts);
    if (target_.is_zero()) return false;
    Arguments arguments;
    for (size_t i = 0; i < parts.size(); ++i)
        arguments.add(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), parts[i]->read(sources_[i]));
    arguments.add(DNNL_ARG_DST, whole.write(target_));
    run(concat_, arguments);
    return true;
}

// Numbers of eight bits that are multiples of one step.
bool Pieces::join_int8(const std::vector<Tensor*>& parts, Tensor& whole) {
    std::vector<Int8> found;
    for (const Tensor* part : parts) {
        const auto one = part->int8();
        if (!one || (!found.empty() && one->step != found[0].step)) return false;
        if (!found.empty() && one->desc.get_data_type() != found[0].desc.get_data_type())
            return false;
        found.push_back(*one);
    }
    std::vector<memory::desc> layouts;
    for (const Int8& one : found) layouts.push_back(one.desc);
    if (layouts != layouts_) make(layouts);
    if (target_.is_zero()) return false;
    Arguments arguments;
    for (size_t i = 0; i < parts.size(); ++i)
        arguments.add(DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), parts[i]->read(found[i]));
    arguments.add(DNNL_ARG_DST, whole.write(Int8{target_, found[0].step}));
    run(concat_, arguments);
    return true;
}

void Pieces::join(const std::vector<Tensor*>& parts, Tensor& whole) {
    if (join_int8(parts, whole)) return;
    if (join_blocked(parts, whole)) return;
    float* to = whole.write();
    const int64_t step = whole_[axis_] * inner_;
    for (size_t i = 0; i < parts.size(); ++i) {
        const int64_t width = parts_[i][axis_] * inner_;
        copy_rows(parts[i]->read(), width, to + offsets_[i][axis_] * inner_, step, outer_, width);
    }
}

bool Pieces::cut_blocked(const Tensor& whole, Tensor& part, size_t i) {
    const auto layout = whole.newest();
    const auto target = alike(layout, parts_[i]);
    if (!target || part.count() == 0) return false;
    const auto from = window(layout, i);
    if (from.is_zero()) return false;
    cuts_[i].run({from, cpu(), whole.read(layout).get_data_handle()}, part.write(*target));
    return true;
}

void Pieces::cut(const Tensor& whole, const std::vector<Tensor*>& parts) {
    const int64_t step = whole_[axis_] * inner_;
    for (size_t i = 0; i < parts.size(); ++i) {
        if (!parts[i] || cut_blocked(whole, *parts[i], i)) continue;
        const int64_t width = parts_[i][axis_] * inner_;
        copy_rows(whole.read() + offsets_[i][axis_] * inner_, step, parts[i]->write(), width,
                  outer_, width);
    }
}

}  // namespace sn
