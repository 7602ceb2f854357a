// How values lie in memory.
#include <cstring>
#include <numeric>

#include "oneapi/dnnl/dnnl.hpp"

namespace dnnl {

namespace {
using Tag = memory::format_tag;

// A tag: its axes from the outermost to the innermost, and the blocks within.
struct Order {
    Tag tag;
    std::vector<size_t> axes;
    std::vector<std::pair<int64_t, int64_t>> blocks;
};

const Order& order_of(Tag tag) {
    static const std::vector<Order> all = {
        {Tag::x, {0}, {}},
        {Tag::ab, {0, 1}, {}},
        {Tag::abcd, {0, 1, 2, 3}, {}},
        {Tag::nwc, {0, 2, 1}, {}},
        {Tag::nhwc, {0, 2, 3, 1}, {}},
        {Tag::ndhwc, {0, 2, 3, 4, 1}, {}},
        {Tag::nCw4c, {0, 1, 2}, {{1, 4}}},
        {Tag::nCw8c, {0, 1, 2}, {{1, 8}}},
        {Tag::nCw16c, {0, 1, 2}, {{1, 16}}},
        {Tag::nChw4c, {0, 1, 2, 3}, {{1, 4}}},
        {Tag::nChw8c, {0, 1, 2, 3}, {{1, 8}}},
        {Tag::nChw16c, {0, 1, 2, 3}, {{1, 16}}},
        {Tag::nCdhw4c, {0, 1, 2, 3, 4}, {{1, 4}}},
        {Tag::nCdhw8c, {0, 1, 2, 3, 4}, {{1, 8}}},
        {Tag::nCdhw16c, {0, 1, 2, 3, 4}, {{1, 16}}},
        {Tag::Oihw16o, {0, 1, 2, 3}, {{0, 16}}},
        {Tag::Goihw16g, {0, 1, 2, 3, 4}, {{0, 16}}},
        {Tag::ABcd16b16a, {0, 1, 2, 3}, {{1, 16}, {0, 16}}},
        {Tag::ABcd16b32a2b, {0, 1, 2, 3}, {{1, 16}, {0, 32}, {1, 2}}},
    };
    for (const Order& one : all)
        if (one.tag == tag) return one;
    throw error("no such order of values");
}
}  // namespace

size_t memory::data_type_size(data_type type) {
    return type == data_type::f32 ? 4 : type == data_type::bf16 ? 2 : 1;
}

memory::desc::desc(const dims& sizes, data_type type, const dims& strides)
    : axes_(static_cast<uint8_t>(sizes.size())), type_(type), kind_(format_kind::blocked) {
    if (sizes.size() > most_axes || strides.size() != sizes.size())
        throw error("a description has too many axes");
    std::copy(sizes.begin(), sizes.end(), sizes_.begin());
    std::copy(strides.begin(), strides.end(), strides_.begin());
    padded_ = sizes_;
}

memory::desc::desc(const dims& sizes, data_type type, format_tag tag)
    : desc(sizes, type, dims(sizes.size(), 0)) {
    if (tag == format_tag::any) {
        kind_ = format_kind::any;
        return;
    }
    const Order& order = order_of(tag);
    if (order.axes.size() != axes_) throw error("an order of values is for other axes");
    blocks_ = order.blocks;
    int64_t step = 1;
    Axes within{};
    within.fill(1);
    for (const auto& [axis, size] : blocks_) {
        const auto i = static_cast<size_t>(axis);
        padded_[i] = (padded_[i] + size - 1) / size * size;
        within[i] *= size, step *= size;
    }
    for (size_t i = axes_; i-- > 0;) {
        const size_t axis = order.axes[i];
        strides_[axis] = step;
        step *= std::max<int64_t>(1, padded_[axis] / within[axis]);
    }
}

memory::dims memory::desc::get_inner_blks() const {
    dims found;
    for (const auto& [axis, size] : blocks_) found.push_back(size);
    return found;
}

memory::dims memory::desc::get_inner_idxs() const {
    dims found;
    for (const auto& [axis, size] : blocks_) found.push_back(axis);
    return found;
}

int64_t memory::desc::count() const {
    return std::accumulate(sizes_.begin(), sizes_.begin() + axes_, int64_t{1}, std::multiplies<>());
}

// Up to the last value.
size_t memory::desc::get_size() const {
    if (kind_ != format_kind::blocked || count() == 0) return 0;
    int64_t values = offset_;
    Axes outer = padded_;
    int64_t block = 1;
    for (const auto& [axis, size] : blocks_)
        outer[static_cast<size_t>(axis)] /= size, block *= size;
    for (size_t i = 0; i < axes_; ++i) values += (outer[i] - 1) * strides_[i];
    return static_cast<size_t>(values + block) * data_type_size(type_);
}

memory::desc memory::desc::submemory_desc(const dims& sizes, const dims& offsets,
                                          bool or_none) const {
    if (!blocks_.empty()) {
        if (or_none) return {};
        throw error("a part of a description begins in a block");
    }
    desc made = *this;
    for (size_t i = 0; i < axes_; ++i) {
        made.sizes_[i] = made.padded_[i] = sizes[i];
        made.offset_ += offsets[i] * strides_[i];
    }
    return made;
}

memory::desc memory::desc::permute_axes(const std::vector<int>& to) const {
    desc made = *this;
    for (size_t i = 0; i < axes_; ++i) {
        const auto at = static_cast<size_t>(to[i]);
        made.sizes_[at] = sizes_[i], made.padded_[at] = padded_[i], made.strides_[at] = strides_[i];
    }
    for (auto& block : made.blocks_) block.first = to[static_cast<size_t>(block.first)];
    return made;
}

// The step of an axis with one value says nothing.
bool memory::desc::operator==(const desc& other) const {
    if (axes_ != other.axes_ || type_ != other.type_ || kind_ != other.kind_ ||
        offset_ != other.offset_ || blocks_ != other.blocks_)
        return false;
    for (size_t i = 0; i < axes_; ++i)
        if (sizes_[i] != other.sizes_[i] || padded_[i] != other.padded_[i] ||
            (sizes_[i] != 1 && strides_[i] != other.strides_[i]))
            return false;
    return true;
}

bool memory::desc::is_strided() const {
    return kind_ == format_kind::blocked && type_ == data_type::f32 && blocks_.empty();
}

bool memory::desc::is_dense() const {
    if (!is_strided() || offset_ != 0) return false;
    int64_t step = 1;
    for (size_t i = axes_; i-- > 0; step *= sizes_[i])
        if (sizes_[i] != 1 && strides_[i] != step) return false;
    return true;
}

memory::memory(const desc& of, const engine&) {
    std::shared_ptr<void> owned(new char[of.get_size() + 1],
                                [](void* bytes) { delete[] static_cast<char*>(bytes); });
    state_ = std::make_shared<State>(State{of, owned.get(), owned});
}

memory::memory(const desc& of, const engine&, void* values)
    : state_(std::make_shared<State>(State{of, values, nullptr})) {}

memory operand(const Operands& all, int name) {
    for (const auto& [known, found] : all)
        if (known == name) return found;
    return {};
}

void description::check(bool or_none) const {
    if (!run && !or_none) throw error("this build has no loops for values that lie like this");
}

}  // namespace dnnl

dnnl_status_t dnnl_memory_desc_query(const dnnl::memory::desc* of, dnnl_query_t,
                                     const dnnl_dims_t** found) {
    *found = reinterpret_cast<const dnnl_dims_t*>(of->sizes().data());
    return dnnl_success;
}
