#include "tensor.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "bfloat16.hpp"

namespace sn {

namespace {
std::atomic<uint64_t> changes{1};
}  // namespace

uint64_t shape_changes() {
    return changes.load(std::memory_order_relaxed);
}

// Values that others share are not freed here.
void Tensor::reshape(const Shape& shape) {
    if (storage_.use_count() > 1) return extend(shape);
    storage_->resize(static_cast<size_t>(sn::count(shape)));
    take(shape);
}

void Tensor::extend(const Shape& shape) {
    storage_->extend(static_cast<size_t>(sn::count(shape)));
    take(shape);
}

void Tensor::take(const Shape& shape) {
    if (shape == shape_) return;
    shape_ = shape;
    changes.fetch_add(1, std::memory_order_relaxed);
    plain_.reset();
}

const dnnl::memory::desc& Tensor::plain() const {
    if (!plain_) plain_ = plain_desc(shape_);
    return *plain_;
}

Storage& Tensor::values() const {
    const auto wanted = static_cast<size_t>(count());
    if (storage_->size() < wanted) storage_->extend(wanted);
    return *storage_;
}

void Tensor::copy(const Tensor& other) {
    reshape(other.shape());
    if (storage_->size() == other.storage_->size())
        storage_->adopt(*other.storage_);
    else
        std::copy_n(other.read(), count(), write());
}

void Tensor::share(const Tensor& other) {
    if (count() != other.count())
        throw std::logic_error("blobs that share their values differ in size");
    storage_ = other.storage_;
}

void Tensor::share(std::shared_ptr<Storage> storage) {
    storage_ = std::move(storage);
}

dnnl::memory::desc Tensor::newest() const {
    return storage_->newest(plain());
}

dnnl::memory::desc Tensor::layout() const {
    return retyped(newest(), dnnl::memory::data_type::f32);
}

// One axis, whatever the shape: views have other shapes.
dnnl::memory::desc Storage::rounded_rows() const {
    return retyped(plain_desc({static_cast<int64_t>(size_)}), dnnl::memory::data_type::bf16);
}

bool Storage::is_rounded() const {
    const Copy* newest = written_copy();
    return newest && newest->desc.get_ndims() == 1 && is_narrow(newest->desc);
}

const uint16_t* Storage::read_rounded() {
    return values_of<uint16_t>(read(rounded_rows()));
}

uint16_t* Storage::write_rounded() {
    return values_of<uint16_t>(write(rounded_rows()));
}

void Storage::check_has(int64_t values) const {
    if (!has(values))
        throw std::runtime_error("a blob is read of which only some pixels were computed");
}

}  // namespace sn
