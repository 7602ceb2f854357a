// Shapes, and how oneDNN describes the memory of blobs.
#include <algorithm>
#include <new>

#include "channels.hpp"
#include "failure.hpp"
#include "tensor.hpp"

namespace sn {

int64_t count(const Shape& shape) {
    return count(shape, 0, shape.size());
}

int64_t count(const Shape& shape, size_t from, size_t to) {
    int64_t total = 1;
    for (size_t i = from; i < to; ++i) {
        if (shape[i] < 0) throw Failure(SN_ERROR_ARRAY, "an axis has a size below zero");
        if (__builtin_mul_overflow(total, shape[i], &total)) throw std::bad_alloc();
    }
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
    // oneDNN describes at most twelve axes, and no empty shapes; one flat axis is used for those.
    if (dims.empty() || dims.size() > 12) dims = {count(shape)};
    dnnl::memory::dims strides(dims.size(), 1);
    for (size_t i = dims.size() - 1; i > 0; --i)
        strides[i - 1] = strides[i] * (dims[i] > 0 ? dims[i] : 1);
    return {dims, dnnl::memory::data_type::f32, strides};
}

namespace {
// Whole blocks of channels of single pixels lie one behind the other.
bool is_pixel(const dnnl::memory::desc& desc, const dnnl::memory::dims& dims) {
    return desc.get_inner_nblks() == 1 && dims.size() > 2 &&
           std::all_of(dims.begin() + 2, dims.end(), [](int64_t dim) { return dim == 1; }) &&
           layouts::block_of(desc) > 1;
}
}  // namespace

bool is_plain(const dnnl::memory::desc& desc) {
    if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return false;
    if (desc.get_data_type() != dnnl::memory::data_type::f32) return false;
    const auto dims = desc.get_dims();
    if (desc.get_padded_dims() != dims) return false;
    if (desc.get_inner_nblks() != 0) return is_pixel(desc, dims);
    const auto strides = desc.get_strides();
    int64_t dense = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        if (dims[i] != 1 && strides[i] != dense) return false;
        dense *= dims[i] > 0 ? dims[i] : 1;
    }
    return true;
}

dnnl::memory::desc retyped(const dnnl::memory::desc& desc, dnnl::memory::data_type type) {
    if (desc.get_data_type() == type) return desc;
    const auto dims = desc.get_dims();
    if (desc.get_inner_nblks() == 0) return {dims, type, desc.get_strides()};
    const auto known = layouts::family(dims.size());
    if (known)
        for (const auto tag : {known->by16, known->by8, known->by4})
            if (desc == dnnl::memory::desc(dims, desc.get_data_type(), tag))
                return {dims, type, tag};
    return plain_desc({dims.begin(), dims.end()});
}
}  // namespace sn
