// The names of oneDNN that the engine uses, for builds without it (-DSPARKNET_ONEDNN=OFF,
// docs/decisions/0028).  Memory can be described; nothing is computed: a layer with loops of its
// own works, any other is refused in one sentence.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

enum {
    DNNL_ARG_SRC = 1,
    DNNL_ARG_FROM = 1,
    DNNL_ARG_SRC_1 = 2,
    DNNL_ARG_DST = 17,
    DNNL_ARG_TO = 17,
    DNNL_ARG_WEIGHTS = 33,
    DNNL_ARG_BIAS = 41,
    DNNL_ARG_WORKSPACE = 64,
    DNNL_ARG_DIFF_SRC = 129,
    DNNL_ARG_DIFF_DST = 145,
    DNNL_ARG_DIFF_WEIGHTS = 161,
    DNNL_ARG_DIFF_BIAS = 169,
    DNNL_ARG_MULTIPLE_SRC = 1024,
    DNNL_ARG_ATTR_SCALES = 4096,
};
constexpr int DNNL_ARG_ATTR_MULTIPLE_POST_OP(int i) {
    return 16384 * (i + 1);
}

enum dnnl_status_t { dnnl_success, dnnl_out_of_memory, dnnl_unimplemented };

namespace dnnl {

struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
    dnnl_status_t status = dnnl_unimplemented;
};
[[noreturn]] inline void refuse() {
    throw error(
        "needs oneDNN, which this build does not have: let PyTorch compute the net (pip install "
        "'sparknet[torch]', and device='cpu' where another engine is asked for)");
}

enum class algorithm {
    undef,
    binary_add,
    convolution_auto,
    convolution_direct,
    deconvolution_direct,
    eltwise_clip_v2,
    eltwise_gelu_erf,
    eltwise_gelu_tanh,
    eltwise_hardswish,
    eltwise_linear,
    eltwise_logistic,
    eltwise_mish,
    eltwise_relu,
    eltwise_swish,
    eltwise_tanh,
    lrn_across_channels,
    pooling_avg_exclude_padding,
    pooling_avg_include_padding,
    pooling_max,
    softmax_accurate,
    softmax_log,
};
enum class prop_kind { forward_inference, forward_training };
enum class scratchpad_mode { user };
enum class fpmath_mode { bf16 };
enum class cpu_isa : unsigned {
    none = 0,
    avx2 = 1,
    avx2_vnni = 2,
    avx512_core = 4,
    avx512_core_vnni = 8,
    avx512_core_bf16 = 16,
    avx512_core_amx = 32,
};
inline cpu_isa get_effective_cpu_isa() {
    return cpu_isa::none;
}

struct engine {
    enum class kind { cpu };
    engine(kind, size_t) {}
};
struct stream {
    explicit stream(const engine&) {}
};

class memory {
   public:
    using dims = std::vector<int64_t>;
    enum class data_type { undef, f32, bf16, s8, u8 };
    enum class format_kind { undef, any, blocked };
    // Rows, then orders that no values have here.
    enum class format_tag {
        x,
        ab,
        abcd,
        any,
        nwc,
        nhwc,
        ndhwc,
        nCw4c,
        nCw8c,
        nCw16c,
        nChw4c,
        nChw8c,
        nChw16c,
        nCdhw4c,
        nCdhw8c,
        nCdhw16c,
        Oihw16o,
        Goihw16g,
        ABcd16b16a,
        ABcd16b32a2b,
        BA16a64b,
    };
    static size_t data_type_size(data_type type) {
        return type == data_type::f32 ? 4 : type == data_type::bf16 ? 2 : 1;
    }

    class desc {
       public:
        desc() = default;
        desc(const dims& sizes, data_type type, const dims& strides)
            : sizes_(sizes), strides_(strides), type_(type) {}
        desc(const dims& sizes, data_type type, format_tag tag)
            : desc(sizes, type, dims(sizes.size(), 1)) {
            if (tag > format_tag::abcd) tag_ = tag;
            for (size_t i = sizes.size(); i-- > 1;)
                strides_[i - 1] = strides_[i] * (sizes[i] > 0 ? sizes[i] : 1);
        }

        bool is_zero() const { return type_ == data_type::undef; }
        explicit operator bool() const { return !is_zero(); }
        const desc* get(bool = false) const { return this; }
        int get_ndims() const { return static_cast<int>(sizes_.size()); }
        data_type get_data_type() const { return type_; }
        format_kind get_format_kind() const {
            return is_zero()                  ? format_kind::undef
                   : tag_ == format_tag::abcd ? format_kind::blocked
                                              : format_kind::any;
        }
        const dims& get_dims() const { return sizes_; }
        const dims& get_padded_dims() const { return sizes_; }
        const dims& get_strides() const { return strides_; }
        int get_inner_nblks() const { return 0; }
        dims get_inner_blks() const { return {}; }
        dims get_inner_idxs() const { return {}; }
        size_t get_size() const {
            int64_t last = 0;
            for (size_t i = 0; i < sizes_.size(); ++i) {
                if (sizes_[i] == 0) return 0;
                last += (sizes_[i] - 1) * strides_[i];
            }
            return static_cast<size_t>(last + 1) * data_type_size(type_);
        }
        desc submemory_desc(const dims&, const dims&, bool = false) const { return {}; }
        desc permute_axes(const std::vector<int>&) const { refuse(); }
        // The step of an axis with one value says nothing.
        bool operator==(const desc& other) const {
            if (type_ != other.type_ || tag_ != other.tag_ || sizes_ != other.sizes_) return false;
            for (size_t i = 0; i < sizes_.size(); ++i)
                if (sizes_[i] != 1 && strides_[i] != other.strides_[i]) return false;
            return true;
        }
        bool operator!=(const desc& other) const { return !(*this == other); }

       private:
        dims sizes_, strides_;
        data_type type_ = data_type::undef;
        format_tag tag_ = format_tag::abcd;
    };

    memory() = default;
    memory(const desc& of, const engine&, void* values) : desc_(of), values_(values) {}
    memory(const desc& of, const engine&)
        : desc_(of), owned_(new char[of.get_size() + 1]), values_(owned_.get()) {}
    explicit operator bool() const { return values_ != nullptr; }
    const desc& get_desc() const { return desc_; }
    const void* get(bool = false) const { return values_; }
    void* get_data_handle() const { return values_; }
    void set_data_handle(void* values) { values_ = values; }

   private:
    desc desc_;
    std::shared_ptr<char[]> owned_;
    void* values_ = nullptr;
};

struct post_ops {
    void append_sum(float, int32_t = 0, memory::data_type = memory::data_type::undef) {}
    void append_binary(algorithm, const memory::desc&) {}
    void append_eltwise(algorithm, float, float) {}
    int len() const { return 0; }
};
struct primitive_attr {
    void set_scratchpad_mode(scratchpad_mode) {}
    void set_fpmath_mode(fpmath_mode) {}
    void set_scales_mask(int, int) {}
    void set_post_ops(const post_ops&) {}
};

struct description {
    explicit operator bool() const { return false; }
    const char* impl_info_str() const { return ""; }
    bool next_impl() const { return false; }
    memory::desc src_desc() const { return {}; }
    memory::desc weights_desc() const { return {}; }
    memory::desc dst_desc() const { return {}; }
    memory::desc diff_src_desc() const { return {}; }
    memory::desc diff_weights_desc() const { return {}; }
    memory::desc diff_dst_desc() const { return {}; }
    memory::desc workspace_desc() const { return {}; }
};

// What oneDNN would compute; whoever describes it is refused.
struct primitive {
    struct primitive_desc : description {
        primitive_desc() = default;
        template <class... Any>
        primitive_desc(const engine&, const Any&...) {
            refuse();
        }
    };
    primitive() = default;
    primitive(const primitive_desc&) {}
    explicit operator bool() const { return false; }
};
using concat = primitive;
using convolution_forward = primitive;
using convolution_backward_data = primitive;
using convolution_backward_weights = primitive;
using deconvolution_forward = primitive;
using deconvolution_backward_data = primitive;
using deconvolution_backward_weights = primitive;
using eltwise_forward = primitive;
using lrn_backward = primitive;
using lrn_forward = primitive;
using matmul = primitive;
using pooling_backward = primitive;
using pooling_forward = primitive;
using reorder = primitive;
using shuffle_forward = primitive;
using softmax_backward = primitive;
using softmax_forward = primitive;

}  // namespace dnnl

using dnnl_dims_t = int64_t[12];
enum dnnl_query_t { dnnl_query_dims };
inline dnnl_status_t dnnl_memory_desc_query(const dnnl::memory::desc* of, dnnl_query_t,
                                            const dnnl_dims_t** found) {
    *found = reinterpret_cast<const dnnl_dims_t*>(of->get_dims().data());
    return dnnl_success;
}
template <class... Any>
dnnl_status_t dnnl_sgemm(const Any&...) {
    dnnl::refuse();
}
