// The values of a blob: plain rows, and copies in layouts that oneDNN chose.
#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "bfloat16.hpp"
#include "channels.hpp"
#include "parallel.hpp"
#include "pass.hpp"
#include "tensor.hpp"

namespace sn {

namespace {
// The most layouts that one blob is kept in at the same time.
constexpr size_t most_copies = 4;

bool is_int8(const dnnl::memory::desc& desc) {
    const auto type = desc.get_data_type();
    return type == dnnl::memory::data_type::s8 || type == dnnl::memory::data_type::u8;
}

// Without copies of both.
bool have_same_dims(const dnnl::memory::desc& a, const dnnl::memory::desc& b) {
    const auto dims = [](const dnnl::memory::desc& of) {
        const dnnl_dims_t* found = nullptr;
        dnnl_memory_desc_query(of.get(), dnnl_query_dims, &found);
        return *found;
    };
    const int axes = a.get_ndims();
    return axes == b.get_ndims() && std::equal(dims(a), dims(a) + axes, dims(b));
}

// Values of this type in row-major order, by these axes.
dnnl::memory::desc row_major(const dnnl::memory::dims& dims, dnnl::memory::data_type type) {
    return retyped(plain_desc({dims.begin(), dims.end()}), type);
}

void clear(char* bytes, int64_t count) {
    parallel(count, [=](int64_t begin, int64_t end) {
        std::memset(bytes + begin, 0, static_cast<size_t>(end - begin));
    });
}

// Blocks of channels are padded in the last block of an image alone.
void clear_padding(const dnnl::memory::desc& desc, float* values) {
    char* bytes = reinterpret_cast<char*>(values);
    const auto size = static_cast<int64_t>(desc.get_size());
    if (layouts::block_of(desc) == 0) return clear(bytes, size);
    const auto width = static_cast<int64_t>(dnnl::memory::data_type_size(desc.get_data_type()));
    const int64_t images = desc.get_dims()[0], last = desc.get_strides()[1] * width;
    parallel_each(images, last, [=](int64_t i) {
        std::memset(bytes + size / images * (i + 1) - last, 0, static_cast<size_t>(last));
    });
}
}  // namespace

Storage::Storage(size_t values) {
    resize(values);
}

Storage::Storage(std::shared_ptr<const sn_array> values) : lender_(std::move(values)) {
    sn_layout layout;
    sn_array_describe(&layout, lender_.get());
    plain_ = {lender_, static_cast<float*>(layout.data)};
    size_ = capacity_ = static_cast<size_t>(layout.size);
}

void Storage::resize(size_t values) {
    if (values == size_) return;
    if (lender_) throw std::logic_error("the memory of others cannot change its size");
    if (values > capacity_ || !plain_) {
        plain_.reset();
        capacity_ = values;
        exposed_ = false;
    }
    copies_.clear();
    only_.clear();
    plain_valid_ = true;
    gone_ = false;
    size_ = values;
}

void Storage::extend(size_t values) {
    if (values == size_) return;
    if (gone_ || (!plain_ && plain_valid_)) return resize(values);
    edit();
    const auto before = plain_;
    const size_t known = size_;
    resize(values);
    if (plain_) return;
    allocate(true);
    std::copy_n(before.get(), known, plain_.get());
}

void Storage::allocate(bool zeros) {
    if (plain_) return;
    if (capacity_ > SIZE_MAX / sizeof(float) / 2) throw std::bad_alloc();
    plain_ = pages().take((capacity_ > 0 ? capacity_ : 1) * sizeof(float));
    if (zeros) std::fill_n(plain_.get(), capacity_, 0.0F);
}

size_t Storage::row_bytes() const {
    return plain_ && !lender_ ? capacity_ * sizeof(float) : 0;
}

size_t Storage::layout_bytes(std::set<const float*>& counted) const {
    size_t total = 0;
    for (const auto& copy : copies_)
        if (copy.pages && counted.insert(copy.pages.get()).second) total += copy.desc.get_size();
    return total;
}

// The padding of a layout is zero from the beginning, whoever writes the rest.
void Storage::Copy::take_pages() {
    pages = sn::pages().take(desc.get_size());
    if (desc.get_padded_dims() != desc.get_dims()) clear_padding(desc, pages.get());
}

bool Storage::Copy::takes_rows_of(const dnnl::memory::desc& source) {
    if (have_same_dims(by_axes, source)) return true;
    const auto type = desc.get_data_type();
    const auto made = row_major(source.get_dims(), type);
    if (desc != row_major(desc.get_dims(), type) || made.get_size() != desc.get_size())
        return false;
    by_axes = made;
    return true;
}

void Storage::invalidate() {
    only_.clear();
    for (auto& copy : copies_) copy.valid = copy.written = false, copy.pages.reset();
}

// If plain rows are not valid, there is a written copy.
const Storage::Copy* Storage::written_copy() const {
    for (const auto& copy : copies_)
        if (copy.written) return &copy;
    return nullptr;
}

Storage::Copy& Storage::copy(const dnnl::memory::desc& wanted, const dnnl::memory::desc& rows,
                             float step) {
    for (auto& copy : copies_)
        if (copy.step == step && are_same(copy.desc, wanted) && are_same(copy.rows, rows))
            return copy;
    if (copies_.size() >= most_copies) drop_one();
    copies_.emplace_back();
    copies_.back().desc = wanted;
    copies_.back().rows = rows;
    copies_.back().step = step;
    return copies_.back();
}

// Shapes and layouts may alternate for ever: the oldest copy that nobody
// needs is dropped.
void Storage::drop_one() {
    auto gone = copies_.end();
    for (auto at = copies_.begin(); at != copies_.end(); ++at) {
        if (!at->written && gone == copies_.end()) gone = at;
        if (!at->valid) {
            gone = at;
            break;
        }
    }
    copies_.erase(gone);
}

// Version 0 means that others may write, or may just have written, without notice.
bool Storage::is_current(const Copy& copy) const {
    if (!copy.valid || !lender_) return copy.valid;
    return copy.version != 0 && copy.version == version();
}

float* Storage::read() {
    if (gone_) throw std::runtime_error("a blob is read whose values were given back");
    allocate(plain_valid_);
    if (!plain_valid_) {
        own_rows(false);
        const Copy& newest = *written_copy();
        const auto dims = newest.desc.get_dims();
        flatten_.run(newest.memory(), newest.step,
                     {plain_desc({dims.begin(), dims.end()}), cpu(), plain_.get()}, 1);
        plain_valid_ = true;
    }
    return plain_.get();
}

// Leaves rows that another storage also holds to that storage.
void Storage::own_rows(bool with_values) {
    if (exposed_ || lender_ || !plain_ || plain_.use_count() == 1) return;
    const auto before = std::move(plain_);
    plain_ = nullptr;
    allocate(false);
    if (with_values) std::copy_n(before.get(), size_, plain_.get());
}

float* Storage::write() {
    own_rows(false);
    allocate(false);
    invalidate();
    plain_valid_ = true;
    gone_ = false;
    return plain_.get();
}

float* Storage::edit() {
    read();
    own_rows(true);
    invalidate();
    return plain_.get();
}

bool Storage::is_rows(const dnnl::memory::desc& wanted) const {
    return plain_view_.is_of(wanted) || is_plain(wanted);
}

dnnl::memory Storage::read(const dnnl::memory::desc& wanted) {
    if (is_rows(wanted)) return plain_view_.of(wanted, read());
    return filled(copy(wanted));
}

dnnl::memory Storage::read(const Int8& wanted) {
    return filled(copy(wanted.desc, {}, wanted.step));
}

// A copy with the newest values.
dnnl::memory Storage::filled(Copy& found) {
    if (is_current(found)) return found.memory();
    const uint64_t version_now = version();
    if (!found.pages) found.take_pages();
    const Copy* source = plain_valid_ ? nullptr : written_copy();
    if (source && have_same_dims(source->desc, found.desc)) {
        found.fill.run(source->memory(), source->step, found.memory(), found.step);
    } else if (source && found.takes_rows_of(source->desc)) {
        found.fill.run(source->memory(), source->step,
                       found.other_axes.of(found.by_axes, found.pages.get()), found.step);
    } else {
        const auto dims = found.desc.get_dims();
        check_has(sn::count(dims));
        found.fill.run({plain_desc({dims.begin(), dims.end()}), cpu(), read()}, 1, found.memory(),
                       found.step);
    }
    found.valid = true;
    found.version = version_now;
    return found.memory();
}

dnnl::memory Storage::read(const dnnl::memory::desc& wanted, const dnnl::memory::desc& rows) {
    if (ordered_view_.is_of(wanted) ? ordered_view_.is_of(rows) : wanted == rows)
        return ordered_view_.of(wanted, read());
    auto& found = copy(wanted, rows);
    if (is_current(found)) return found.memory();
    const uint64_t version_now = version();
    if (!found.pages) found.take_pages();
    found.fill.run({rows, cpu(), read()}, found.memory());
    found.valid = true;
    found.version = version_now;
    return found.memory();
}

dnnl::memory Storage::write(const dnnl::memory::desc& wanted) {
    if (is_rows(wanted)) return plain_view_.of(wanted, write());
    if (lender_) throw std::logic_error("the memory of others is written in rows");
    auto& found = copy(wanted);
    overwrite(found, false);
    return found.memory();
}

dnnl::memory Storage::edit(const dnnl::memory::desc& wanted) {
    if (is_rows(wanted)) return plain_view_.of(wanted, edit());
    if (lender_) throw std::logic_error("the memory of others is written in rows");
    read(wanted);
    auto& found = copy(wanted);
    overwrite(found, true);
    return found.memory();
}

dnnl::memory Storage::write(const Int8& wanted) {
    auto& found = copy(wanted.desc, {}, wanted.step);
    overwrite(found, false);
    return found.memory();
}

dnnl::memory Storage::replace(const Int8& wanted, const Int8& after) {
    read(wanted);
    overwrite(copy(wanted.desc, {}, wanted.step), true);
    auto& made = copy(after.desc, {}, after.step);
    auto& found = copy(wanted.desc, {}, wanted.step);
    if (&made != &found) {
        std::swap(made.pages, found.pages);
        made.valid = made.written = true;
        found.valid = found.written = false;
    }
    return made.memory();
}

// The values will be written to this copy, in pages that nobody else holds.
void Storage::overwrite(Copy& found, bool with_values) {
    auto before = std::move(found.pages);
    invalidate();
    if (before && before.use_count() == 1) {
        found.pages = std::move(before);
    } else {
        found.take_pages();
        if (with_values) std::memcpy(found.pages.get(), before.get(), found.desc.get_size());
    }
    found.valid = found.written = true;
    plain_valid_ = gone_ = false;
}

void Storage::give_back() {
    settle();
    if (exposed_ || lender_ || size_ == 0) return;
    plain_.reset();
    invalidate();
    plain_valid_ = gone_ = true;
}

void Storage::drop_layouts() {
    if (lender_) invalidate();
}

void Storage::adopt(Storage& other) {
    if (this == &other) return;
    if (size_ != other.size_) throw std::logic_error("a storage adopts values of its own size");
    if (other.gone_) other.read();
    gone_ = false;
    if (const Copy* newest = other.written_copy(); newest && !other.lender_ && !lender_) {
        Copy& mine = copy(newest->desc, {}, newest->step);
        const auto pages = newest->pages;
        invalidate();
        mine.pages = pages;
        mine.valid = mine.written = true;
        only_ = other.only_;
        plain_valid_ = false;
    } else if (exposed_ || lender_ || other.exposed_ || other.lender_) {
        std::copy_n(other.read(), size_, write());
    } else {
        other.allocate(true);
        invalidate();
        plain_ = other.plain_;
        capacity_ = other.capacity_;
        plain_valid_ = true;
    }
}

dnnl::memory::desc Storage::newest(const dnnl::memory::desc& plain) const {
    if (lender_) return plain;
    const Copy* found = nullptr;
    for (const auto& copy : copies_)
        if (copy.valid && have_same_dims(copy.desc, plain) && (!found || copy.written))
            found = &copy;
    if (!found) return plain;
    // Values that were rounded for another reader are not the newest.
    const bool rounded = !found->written && is_narrow(found->desc);
    return is_int8(found->desc) || rounded ? retyped(found->desc, dnnl::memory::data_type::f32)
                                           : found->desc;
}

std::optional<Int8> Storage::int8(const dnnl::memory::desc& plain) const {
    for (const auto& copy : copies_)
        if (copy.written && is_int8(copy.desc) && have_same_dims(copy.desc, plain))
            return Int8{copy.desc, copy.step};
    return std::nullopt;
}

std::shared_ptr<float> Storage::expose() {
    edit();
    exposed_ = true;
    return plain_;
}

bool Storage::adopt(std::shared_ptr<float> rows, size_t size) {
    settle();
    gone_ = false;
    if (exposed_ || size != size_) {
        std::copy_n(rows.get(), size, edit());
        return false;
    }
    plain_ = std::move(rows);
    capacity_ = size_;
    invalidate();
    plain_valid_ = true;
    return true;
}

void Storage::settle() {
    // The views may all be gone by now.
    if (exposed_ && plain_.use_count() == 1) exposed_ = false;
    if (exposed_) edit();
}
}  // namespace sn
