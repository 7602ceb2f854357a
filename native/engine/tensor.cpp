#include "tensor.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace sn {

int64_t count(const Shape& shape) {
    return count(shape, 0, shape.size());
}

int64_t count(const Shape& shape, size_t from, size_t to) {
    int64_t total = 1;
    for (size_t i = from; i < to; ++i) total *= shape[i];
    return total;
}

dnnl::engine& cpu() {
    static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
}

dnnl::stream& stream() {
    thread_local dnnl::stream stream(cpu());
    return stream;
}

dnnl::memory::desc plain_desc(const Shape& shape) {
    dnnl::memory::dims dims(shape.begin(), shape.end());
    // oneDNN describes at most twelve axes and none of nothing; elsewhere one flat axis will do.
    if (dims.empty() || dims.size() > 12) dims = {count(shape)};
    dnnl::memory::dims strides(dims.size(), 1);
    for (size_t i = dims.size() - 1; i > 0; --i)
        strides[i - 1] = strides[i] * (dims[i] > 0 ? dims[i] : 1);
    return {dims, dnnl::memory::data_type::f32, strides};
}

bool is_plain(const dnnl::memory::desc& desc) {
    if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return false;
    if (desc.get_inner_nblks() != 0 || desc.get_padded_dims() != desc.get_dims()) return false;
    const auto dims = desc.get_dims();
    const auto strides = desc.get_strides();
    int64_t dense = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        if (dims[i] != 1 && strides[i] != dense) return false;
        dense *= dims[i];
    }
    return true;
}

Storage::Storage(size_t values) {
    resize(values);
}

Storage::Storage(std::shared_ptr<float> values, size_t size)
    : plain_(std::move(values)), size_(size), capacity_(size), borrowed_(true) {}

void Storage::resize(size_t values) {
    if (values == size_) return;
    if (values > capacity_) {
        plain_.reset();
        capacity_ = values;
        plain_valid_ = true;
    } else if (!plain_valid_) {
        read();
    }
    copies_.clear();
    size_ = values;
}

void Storage::allocate() {
    if (plain_) return;
    const size_t bytes = ((capacity_ > 0 ? capacity_ : 1) * sizeof(float) + 63) / 64 * 64;
    // calloc leaves large blocks untouched until they are used; one line more aligns them.
    void* raw = std::calloc(1, bytes + 64);
    if (!raw) throw std::bad_alloc();
    auto aligned = (reinterpret_cast<uintptr_t>(raw) + 63) / 64 * 64;
    plain_ = std::shared_ptr<float>(reinterpret_cast<float*>(aligned),
                                    [raw](float*) { std::free(raw); });
}

void Storage::invalidate() {
    for (auto& copy : copies_) copy.valid = false;
}

Storage::Copy* Storage::valid_copy() {
    for (auto& copy : copies_)
        if (copy.valid) return &copy;
    return nullptr;
}

Storage::Copy& Storage::copy(const dnnl::memory::desc& wanted) {
    for (auto& copy : copies_)
        if (copy.memory.get_desc() == wanted) return copy;
    copies_.push_back({dnnl::memory(wanted, cpu()), false});
    return copies_.back();
}

namespace {
void reorder(dnnl::memory from, dnnl::memory to) {
    dnnl::reorder(from, to).execute(stream(), from, to);
    stream().wait();
}
}  // namespace

float* Storage::read() {
    allocate();
    if (!plain_valid_) {
        const auto& newest = valid_copy()->memory;
        const auto dims = newest.get_desc().get_dims();
        reorder(newest, {plain_desc({dims.begin(), dims.end()}), cpu(), plain_.get()});
        plain_valid_ = true;
    }
    return plain_.get();
}

float* Storage::write() {
    allocate();
    invalidate();
    plain_valid_ = true;
    return plain_.get();
}

float* Storage::edit() {
    read();
    invalidate();
    return plain_.get();
}

dnnl::memory Storage::read(const dnnl::memory::desc& wanted) {
    if (is_plain(wanted)) return {wanted, cpu(), read()};
    auto& found = copy(wanted);
    if (found.valid && !borrowed_) return found.memory;
    const auto dims = wanted.get_dims();
    const Copy* source = plain_valid_ ? nullptr : valid_copy();
    if (source && source->memory.get_desc().get_dims() == dims)
        reorder(source->memory, found.memory);
    else
        reorder({plain_desc({dims.begin(), dims.end()}), cpu(), read()}, found.memory);
    found.valid = true;
    return found.memory;
}

dnnl::memory Storage::read(const dnnl::memory::desc& wanted, const dnnl::memory::desc& rows) {
    if (wanted == rows) return {wanted, cpu(), read()};
    auto& found = copy(wanted);
    if (found.valid && !borrowed_) return found.memory;
    reorder({rows, cpu(), read()}, found.memory);
    found.valid = true;
    return found.memory;
}

dnnl::memory Storage::write(const dnnl::memory::desc& wanted) {
    if (is_plain(wanted)) return {wanted, cpu(), write()};
    auto& found = copy(wanted);
    invalidate();
    found.valid = true;
    plain_valid_ = false;
    return found.memory;
}

dnnl::memory::desc Storage::layout(const dnnl::memory::desc& plain) const {
    if (borrowed_) return plain;
    for (const auto& copy : copies_)
        if (copy.valid) {
            const auto desc = copy.memory.get_desc();
            if (desc.get_dims() == plain.get_dims()) return desc;
        }
    return plain;
}

void Storage::settle() {
    if (exposed_) edit();
}

std::shared_ptr<float> Storage::hold() {
    allocate();
    return plain_;
}

void Tensor::reshape(const Shape& shape) {
    shape_ = shape;
    storage_->resize(static_cast<size_t>(count()));
}

void Tensor::share(const Tensor& other) {
    storage_ = other.storage_;
}

void Tensor::share(std::shared_ptr<Storage> storage) {
    storage_ = std::move(storage);
}

dnnl::memory::desc Tensor::layout() const {
    return storage_->layout(plain());
}

}  // namespace sn
