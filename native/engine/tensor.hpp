// How the values of a blob are stored: as plain float32 rows for Caffe and Python, or in a layout
// that oneDNN chose, in float32 or bfloat16; and which one is newest (Caffe: SyncedMemory).
#pragma once

#include <sparknet/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "move.hpp"
#include "view.hpp"

namespace sn {

using Shape = std::vector<int64_t>;

// The product of the sizes; Failure below zero, std::bad_alloc beyond any memory.
int64_t count(const Shape& shape);
int64_t count(const Shape& shape, size_t from, size_t to);

dnnl::stream& stream();

// How values lie in eight bits: each is a whole number times the step.
struct Int8 {
    dnnl::memory::desc desc;
    float step = 1;
};

// Row-major float32 memory of this shape; a scalar is one value on one axis.
dnnl::memory::desc plain_desc(const Shape& shape);
bool is_plain(const dnnl::memory::desc& desc);
// The same order of values in another type; plain float32 rows if no rule for it is known.
dnnl::memory::desc retyped(const dnnl::memory::desc& desc, dnnl::memory::data_type type);

// How often the shape of any tensor has changed, and one more.
uint64_t shape_changes();

// The values of one or more tensors: split copies, reshaped and in-place blobs share one storage.
// Storages that adopted values share pages until one of them writes.
class Storage {
   public:
    explicit Storage(size_t values);
    // Uses memory that others write too: a parameter.  Copies in other layouts stay valid while
    // its version is unchanged.  The engine's own writes (running statistics) do not change the
    // version: only plan/folded_weights.hpp derives values from those, and compares them in every
    // pass.
    explicit Storage(std::shared_ptr<const sn_array> values);

    size_t size() const { return size_; }
    // Makes room for so many values, which will be written next; rows that already fit are kept.
    void resize(size_t values);
    // The same, but the existing values stay where they are.
    void extend(size_t values);

    float* read();
    float* write();
    float* edit();
    dnnl::memory read(const dnnl::memory::desc& wanted);
    // The same for values whose rows are in the order that `rows` describes (convolution weights).
    dnnl::memory read(const dnnl::memory::desc& wanted, const dnnl::memory::desc& rows);
    dnnl::memory write(const dnnl::memory::desc& wanted);
    // The newest values in this layout; the caller is about to change some of them.
    dnnl::memory edit(const dnnl::memory::desc& wanted);
    // The same in eight bits.
    dnnl::memory read(const Int8& wanted);
    dnnl::memory write(const Int8& wanted);
    // Plain rows in bfloat16: whether the newest values are stored so, and these values.
    bool is_rounded() const;
    const uint16_t* read_rounded();
    uint16_t* write_rounded();
    // The newest values as `wanted` says; the caller replaces them by others, as `after` says.
    dnnl::memory replace(const Int8& wanted, const Int8& after);

    // Takes over the present values of another storage of this size.  Pages are shared; only values
    // that somebody else may see or write at any time are copied.
    void adopt(Storage& other);

    // The layout and type of the newest values; `plain` is the layout that the caller calls plain.
    // Eight bits are read as float32.
    dnnl::memory::desc newest(const dnnl::memory::desc& plain) const;
    // The values just written are only those of the pixels that readers look at
    // (plan/skip_pixels.cpp), an array of these sizes.
    void note_only(const dnnl::memory::dims& dims) { only_ = dims; }
    bool has_only(const dnnl::memory::dims& dims) const { return only_ == dims; }
    // Whether there are so many values, and a refusal to read them if not.
    bool has(int64_t values) const { return only_.empty() || sn::count(only_) >= values; }
    void check_has(int64_t values) const;
    // How the newest values lie if they were written in eight bits, by these axes.
    std::optional<Int8> int8(const dnnl::memory::desc& plain) const;

    // The newest plain values, for a view that may outlive this object.  While the view exists,
    // `settle` updates it after every run.
    std::shared_ptr<float> expose();
    bool is_exposed() const { return exposed_; }
    void settle();

    // Uses `rows` as storage; where views exist, copies the values and returns false.
    bool adopt(std::shared_ptr<float> rows, size_t size);

    // The version of memory that others write: each write changes it; 0 if writes go unnoticed.
    uint64_t version() const { return lender_ ? sn_array_version(lender_.get()) : 0; }

    // Frees the memory for other blobs, unless somebody else holds it.  Reading the values before
    // they are written again is refused.
    void give_back();
    bool is_gone() const { return gone_; }
    // Drops a parameter's copies in other layouts, because its values will have changed when they
    // are needed next.
    void drop_layouts();

    // The memory in use: for plain rows (unless others own them), and for other layouts.
    size_t row_bytes() const;
    size_t layout_bytes(std::set<const float*>& counted) const;

   private:
    // A layout that was asked for; it has pages while it is valid.
    struct Copy {
        dnnl::memory::desc desc;
        // The order of the rows, if a caller named one: a square matrix and its transpose may be
        // wanted in the same layout.
        dnnl::memory::desc rows;
        // What its numbers are multiples of: other than 1 in eight bits alone.
        float step = 1;
        std::shared_ptr<float> pages;
        bool valid = false;
        // The values were written here; all other valid copies were made from these.
        bool written = false;
        // The version of the memory that it was made from, if others write that.
        uint64_t version = 0;
        Move fill;
        mutable View view;
        // The same memory by the axes of the copy whose values it took last, if those were others.
        dnnl::memory::desc by_axes;
        View other_axes;

        const dnnl::memory& memory() const { return view.of(desc, pages.get()); }
        void take_pages();
        // Whether its rows are those of `source` in one row-major order, whatever axes either has:
        // one reorder fills them.
        bool takes_rows_of(const dnnl::memory::desc& source);
    };

    dnnl::memory::desc rounded_rows() const;
    bool is_rows(const dnnl::memory::desc& wanted) const;
    void allocate(bool zeros);
    void own_rows(bool with_values);
    void invalidate();
    Copy& copy(const dnnl::memory::desc& wanted, const dnnl::memory::desc& rows = {},
               float step = 1);
    dnnl::memory filled(Copy& found);
    const Copy* written_copy() const;
    Copy* written_copy() { return const_cast<Copy*>(std::as_const(*this).written_copy()); }
    void overwrite(Copy& found, bool with_values);
    bool is_current(const Copy& copy) const;
    void drop_one();

    std::shared_ptr<float> plain_;
    // Over the rows: as they are, and as `read(wanted, rows)` names them.
    View plain_view_, ordered_view_;
    size_t size_ = 0;
    size_t capacity_ = 0;
    bool plain_valid_ = true;
    std::vector<Copy> copies_;
    Move flatten_;
    bool exposed_ = false;
    bool gone_ = false;
    // If not empty, the sizes of values that are fewer than all.
    dnnl::memory::dims only_;
    // The owner of the memory, if others write it (parameters).
    std::shared_ptr<const sn_array> lender_;
};

// A shape over a storage.
class Tensor {
   public:
    Tensor() : storage_(std::make_shared<Storage>(size_t{0})) {}

    const Shape& shape() const { return shape_; }
    int64_t count() const { return sn::count(shape_); }
    void reshape(const Shape& shape);
    // The same, but the existing values stay where they are, as in Caffe's blobs.
    void extend(const Shape& shape);
    // Shares another tensor's values from now on, under this shape of as many values.
    void share(const Tensor& other);
    void share(std::shared_ptr<Storage> storage);
    bool shares(const Tensor& other) const { return storage_ == other.storage_; }
    // Becomes a copy of another tensor, by Storage::adopt where both fill their storages.
    void copy(const Tensor& other);

    // Plain rows: the newest values; all of them to be overwritten; some of them to be changed.
    const float* read() const {
        storage_->check_has(count());
        return values().read();
    }
    float* write() { return values().write(); }
    float* edit() { return values().edit(); }
    // The same in a layout that a primitive asks for.
    dnnl::memory read(const dnnl::memory::desc& wanted) const { return values().read(wanted); }
    dnnl::memory read(const dnnl::memory::desc& wanted, const dnnl::memory::desc& rows) const {
        return values().read(wanted, rows);
    }
    dnnl::memory write(const dnnl::memory::desc& wanted) { return values().write(wanted); }
    dnnl::memory edit(const dnnl::memory::desc& wanted) { return values().edit(wanted); }
    dnnl::memory read(const Int8& wanted) const { return values().read(wanted); }
    dnnl::memory write(const Int8& wanted) { return values().write(wanted); }
    dnnl::memory replace(const Int8& wanted, const Int8& after) {
        return values().replace(wanted, after);
    }
    std::optional<Int8> int8() const { return storage_->int8(plain()); }
    bool is_rounded() const { return storage_->is_rounded(); }
    const uint16_t* read_rounded() const { return values().read_rounded(); }
    uint16_t* write_rounded() { return values().write_rounded(); }

    const dnnl::memory::desc& plain() const;
    // The layout of the newest values, as an n-d layout of this shape if that is possible.
    dnnl::memory::desc newest() const;
    // The same order in float32, for layers that compute in float32.
    dnnl::memory::desc layout() const;
    Storage& storage() const { return *storage_; }
    std::shared_ptr<float> expose() { return values().expose(); }
    bool adopt(std::shared_ptr<float> rows) {
        return values().adopt(std::move(rows), static_cast<size_t>(count()));
    }
    const std::shared_ptr<Storage>& share_storage() const { return storage_; }

   private:
    void take(const Shape& shape);
    // The storage, with room for this shape, because another tensor may have resized it.
    Storage& values() const;

    Shape shape_;
    // Of this shape, once somebody has asked for it.
    mutable std::optional<dnnl::memory::desc> plain_;
    std::shared_ptr<Storage> storage_;
};

}  // namespace sn
