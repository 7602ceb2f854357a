// Where a blob's values lie: plain float32 rows for Caffe and Python, or a layout of
// oneDNN's choosing, in float32 or bfloat16, and which is newest (Caffe: SyncedMemory).
#pragma once

#include <sparknet/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <set>
#include <vector>

#include "move.hpp"

namespace sn {

using Shape = std::vector<int64_t>;

// The product of the sizes; Failure below zero, std::bad_alloc beyond any memory.
int64_t count(const Shape& shape);
int64_t count(const Shape& shape, size_t from, size_t to);

dnnl::engine& cpu();
dnnl::stream& stream();

// Row-major float32 memory of this shape; a scalar is one value on one axis.
dnnl::memory::desc plain_desc(const Shape& shape);
bool is_plain(const dnnl::memory::desc& desc);
// The same order of values in another type; plain float32 rows where no rule is known for it.
dnnl::memory::desc retyped(const dnnl::memory::desc& desc, dnnl::memory::data_type type);

// Values under one or more tensors: split copies, reshaped and in-place blobs share one storage.
// Storages that have adopted values share pages until one of them writes.
class Storage {
   public:
    explicit Storage(size_t values);
    // Memory that others write too: parameters.  What is made from it is kept as long as its
    // version says that nobody did.  The engine's own writes (running statistics) have no
    // version: nothing is made from those but what is compared at every pass
    // (plan/folded_weights.hpp).
    explicit Storage(std::shared_ptr<const sn_array> values);

    size_t size() const { return size_; }
    // Makes room for so many values, which are to be written; rows that fit already are kept.
    void resize(size_t values);
    // The same; the values that there are stay where they are.
    void extend(size_t values);

    float* read();
    float* write();
    float* edit();
    dnnl::memory read(const dnnl::memory::desc& wanted);
    // The same for values whose rows lie in the order that `rows` describes (convolution weights).
    dnnl::memory read(const dnnl::memory::desc& wanted, const dnnl::memory::desc& rows);
    dnnl::memory write(const dnnl::memory::desc& wanted);
    // The newest values in this layout, some of which are about to be changed.
    dnnl::memory edit(const dnnl::memory::desc& wanted);

    // Holds the values that another one of this size has now, as a copy would; what is copied is
    // only what somebody else may see or write at any time.
    void adopt(Storage& other);

    // The layout of the newest values, and their type; `plain` is what the caller would call plain.
    dnnl::memory::desc newest(const dnnl::memory::desc& plain) const;

    // The newest plain values, for a view that may outlive this object.  As long as it lives,
    // `settle` keeps it true after every run.
    std::shared_ptr<float> expose();
    bool is_exposed() const { return exposed_; }
    void settle();

    // Its first values are those rows: looked at, or copied (false) where there are views.
    bool adopt(std::shared_ptr<float> rows, size_t size);

    // Of the memory of others: another one after every write, 0 where that goes unnoticed.
    uint64_t version() const { return lender_ ? sn_array_version(lender_.get()) : 0; }

    // Lets go of the values, for other blobs to take the memory, unless somebody else holds it; who
    // reads them before they are written anew is refused.
    void give_back();
    bool is_gone() const { return gone_; }
    // Lets go of a parameter's copies in other layouts: its values will be others when they are
    // asked for again.
    void drop_layouts();

    // Memory taken so far: for plain rows (not for those of others), and for other layouts.
    size_t row_bytes() const;
    size_t layout_bytes(std::set<const float*>& counted) const;

   private:
    // A layout that was asked for; it has pages while it is valid.
    struct Copy {
        dnnl::memory::desc desc;
        // How rows were taken to lie, where a caller said so: a square matrix and its transpose
        // may be wanted in one layout.
        dnnl::memory::desc rows;
        std::shared_ptr<float> pages;
        bool valid = false;
        // The values were written here; whatever else is valid was made from them.
        bool written = false;
        // Of the memory that it was made from, where others write that.
        uint64_t version = 0;
        Move fill;

        dnnl::memory memory() const { return {desc, cpu(), pages.get()}; }
        void take_pages();
    };

    void allocate(bool zeros);
    void own_rows(bool with_values);
    void invalidate();
    Copy& copy(const dnnl::memory::desc& wanted, const dnnl::memory::desc& rows = {});
    Copy* written_copy();
    void overwrite(Copy& found, bool with_values);
    bool is_current(const Copy& copy) const;
    void drop_one();

    std::shared_ptr<float> plain_;
    size_t size_ = 0;
    size_t capacity_ = 0;
    bool plain_valid_ = true;
    std::vector<Copy> copies_;
    Move flatten_;
    bool exposed_ = false;
    bool gone_ = false;
    // Whose memory it is, where others write it (parameters).
    std::shared_ptr<const sn_array> lender_;
};

// A shape over a storage.
class Tensor {
   public:
    Tensor() : storage_(std::make_shared<Storage>(size_t{0})) {}

    const Shape& shape() const { return shape_; }
    int64_t count() const { return sn::count(shape_); }
    void reshape(const Shape& shape);
    // The same; the values that there are stay where they are, as in Caffe's blobs.
    void extend(const Shape& shape);
    // Looks at another tensor's values under its own shape, of as many values, from now on.
    void share(const Tensor& other);
    void share(std::shared_ptr<Storage> storage);
    bool shares(const Tensor& other) const { return storage_ == other.storage_; }
    // Becomes a copy of another tensor, by Storage::adopt where both fill their storages.
    void copy(const Tensor& other);

    // Plain rows: newest values; about to overwrite all of them; about to change some.
    const float* read() const { return values().read(); }
    float* write() { return values().write(); }
    float* edit() { return values().edit(); }
    // The same in a layout that a primitive asks for.
    dnnl::memory read(const dnnl::memory::desc& wanted) const { return values().read(wanted); }
    dnnl::memory read(const dnnl::memory::desc& wanted, const dnnl::memory::desc& rows) const {
        return values().read(wanted, rows);
    }
    dnnl::memory write(const dnnl::memory::desc& wanted) { return values().write(wanted); }
    dnnl::memory edit(const dnnl::memory::desc& wanted) { return values().edit(wanted); }

    dnnl::memory::desc plain() const { return plain_desc(shape_); }
    // Where the newest values lie now, as an n-d layout of this shape where that is possible.
    dnnl::memory::desc newest() const;
    // The same order in float32: for who computes in that.
    dnnl::memory::desc layout() const;
    Storage& storage() const { return *storage_; }
    std::shared_ptr<float> expose() { return values().expose(); }
    bool adopt(std::shared_ptr<float> rows) {
        return values().adopt(std::move(rows), static_cast<size_t>(count()));
    }
    const std::shared_ptr<Storage>& share_storage() const { return storage_; }

   private:
    // The storage, with room for this shape whatever shape another tensor gave it.
    Storage& values() const;

    Shape shape_;
    std::shared_ptr<Storage> storage_;
};

}  // namespace sn
