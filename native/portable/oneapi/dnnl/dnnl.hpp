// What the engine uses of oneDNN's interface, over loops of our own, for builds without oneDNN
// (-DSPARKNET_ONEDNN=OFF, docs/decisions/0023).
//
// Everything is float32.  Descriptions of other types and of blocks of channels can be made and
// compared, which the engine does before it asks who computes on them: nobody does here.  A
// description that is true has a primitive; pooling and LRN have none, and their layers have plain
// loops for that case.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
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
using dnnl_dims_t = int64_t[12];

namespace dnnl {

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

// Sets of instructions: none of them is used here.
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

struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
    dnnl_status_t status = dnnl_unimplemented;
};

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
    enum class format_tag {
        any,
        x,
        ab,
        abcd,
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
    };
    static size_t data_type_size(data_type type);

    class desc {
       public:
        static constexpr size_t most_axes = 12;
        using Axes = std::array<int64_t, most_axes>;

        desc() = default;
        desc(const dims& sizes, data_type type, format_tag tag);
        desc(const dims& sizes, data_type type, const dims& strides);

        bool is_zero() const { return axes_ == 0; }
        explicit operator bool() const { return !is_zero(); }
        const desc* get(bool = false) const { return this; }
        int get_ndims() const { return static_cast<int>(axes_); }
        data_type get_data_type() const { return type_; }
        format_kind get_format_kind() const { return kind_; }
        dims get_dims() const { return part(sizes_); }
        dims get_padded_dims() const { return part(padded_); }
        dims get_strides() const { return part(strides_); }
        int get_inner_nblks() const { return static_cast<int>(blocks_.size()); }
        dims get_inner_blks() const;
        dims get_inner_idxs() const;
        size_t get_size() const;
        // A part of it, at the same memory; nothing in blocks.
        desc submemory_desc(const dims& sizes, const dims& offsets, bool or_none = false) const;
        // Axis i becomes axis `to[i]`.
        desc permute_axes(const std::vector<int>& to) const;
        bool operator==(const desc& other) const;
        bool operator!=(const desc& other) const { return !(*this == other); }

        // For the loops: how values lie, from the beginning of the memory.
        size_t axes() const { return axes_; }
        const Axes& sizes() const { return sizes_; }
        const Axes& strides() const { return strides_; }
        int64_t offset() const { return offset_; }
        int64_t count() const;
        bool is_any() const { return kind_ == format_kind::any; }
        // Whether it is float32 without blocks; and in rows without gaps.
        bool is_strided() const;
        bool is_dense() const;

       private:
        dims part(const Axes& of) const { return {of.begin(), of.begin() + axes_}; }

        uint8_t axes_ = 0;
        data_type type_ = data_type::undef;
        format_kind kind_ = format_kind::undef;
        int64_t offset_ = 0;
        Axes sizes_{}, padded_{}, strides_{};
        // Axes and sizes of blocks within, outermost first.
        std::vector<std::pair<int64_t, int64_t>> blocks_;
    };

    memory() = default;
    memory(const desc& of, const engine& where);
    memory(const desc& of, const engine& where, void* values);
    explicit operator bool() const { return state_ != nullptr; }
    desc get_desc() const { return state_->desc; }
    const void* get(bool = false) const { return state_.get(); }
    void* get_data_handle() const { return state_ ? state_->values : nullptr; }
    void set_data_handle(void* values) const { state_->values = values; }

    // The first value of its description.
    float* floats() const { return static_cast<float*>(state_->values) + state_->desc.offset(); }
    const desc& described() const { return state_->desc; }

   private:
    struct State {
        memory::desc desc;
        mutable void* values;
        std::shared_ptr<void> owned;
    };
    std::shared_ptr<const State> state_;
};

// What follows a primitive's sums: the old values, another matrix, functions.
class post_ops {
   public:
    struct Op {
        algorithm kind = algorithm::undef;
        float alpha = 0, beta = 0;
    };
    void append_sum(float, int32_t = 0, memory::data_type = memory::data_type::undef) {
        all_.push_back({});
    }
    void append_binary(algorithm kind, const memory::desc&) { all_.push_back({kind}); }
    void append_eltwise(algorithm kind, float alpha, float beta) {
        all_.push_back({kind, alpha, beta});
    }
    int len() const { return static_cast<int>(all_.size()); }
    const std::vector<Op>& all() const { return all_; }

   private:
    std::vector<Op> all_;
};

struct primitive_attr {
    void set_scratchpad_mode(scratchpad_mode) {}
    void set_fpmath_mode(fpmath_mode) {}
    void set_scales_mask(int, int) {}
    void set_post_ops(const post_ops& all) { after = all; }
    post_ops after;
};

using Operands = std::vector<std::pair<int, memory>>;
// Nothing where no such operand is.
memory operand(const Operands& all, int name);

// A computation, if there is one, and how its operands have to lie.
class description {
   public:
    using Run = std::function<void(const Operands&)>;

    explicit operator bool() const { return run != nullptr; }
    const char* impl_info_str() const { return "portable loops (gemm)"; }
    bool next_impl() { return false; }
    const memory::desc& src_desc() const { return src; }
    const memory::desc& weights_desc() const { return weights; }
    const memory::desc& dst_desc() const { return dst; }
    const memory::desc& diff_src_desc() const { return src; }
    const memory::desc& diff_weights_desc() const { return weights; }
    const memory::desc& diff_dst_desc() const { return dst; }
    memory::desc workspace_desc() const { return {}; }

    memory::desc src, weights, dst;
    Run run;

   protected:
    // Refuses what has no computation, unless the caller asked for `or_none`.
    void check(bool or_none) const;
};

struct primitive {
    primitive() = default;
    primitive(const description& of) : run(of.run) {}
    explicit operator bool() const { return run != nullptr; }
    description::Run run;
};

template <bool reverse>
struct window_forward : primitive {
    struct primitive_desc : description {
        primitive_desc() = default;
        primitive_desc(const engine&, prop_kind, algorithm, const memory::desc& from,
                       const memory::desc& by, const memory::desc& bias, const memory::desc& to,
                       const memory::dims& strides, const memory::dims& dilations,
                       const memory::dims& before, const memory::dims& after,
                       const primitive_attr& with = {}, bool or_none = false);
    };
    window_forward() = default;
    window_forward(const primitive_desc& of) : primitive(of) {}
};

template <bool reverse>
struct window_data : primitive {
    struct primitive_desc : description {
        primitive_desc() = default;
        primitive_desc(const engine&, algorithm, const memory::desc& from, const memory::desc& by,
                       const memory::desc& to, const memory::dims& strides,
                       const memory::dims& dilations, const memory::dims& before,
                       const memory::dims& after, const description& forward,
                       const primitive_attr& with = {}, bool or_none = false);
    };
    window_data() = default;
    window_data(const primitive_desc& of) : primitive(of) {}
};

template <bool reverse>
struct window_weights : primitive {
    struct primitive_desc : description {
        primitive_desc() = default;
        primitive_desc(const engine&, algorithm, const memory::desc& from, const memory::desc& by,
                       const memory::desc& bias, const memory::desc& to,
                       const memory::dims& strides, const memory::dims& dilations,
                       const memory::dims& before, const memory::dims& after,
                       const description& forward, const primitive_attr& with = {},
                       bool or_none = false);
    };
    window_weights() = default;
    window_weights(const primitive_desc& of) : primitive(of) {}
};

using convolution_forward = window_forward<false>;
using convolution_backward_data = window_data<false>;
using convolution_backward_weights = window_weights<false>;
using deconvolution_forward = window_forward<true>;
using deconvolution_backward_data = window_data<true>;
using deconvolution_backward_weights = window_weights<true>;

struct matmul : primitive {
    struct primitive_desc : description {
        primitive_desc() = default;
        primitive_desc(const engine&, const memory::desc& a, const memory::desc& b,
                       const memory::desc& bias, const memory::desc& c,
                       const primitive_attr& with = {}, bool or_none = false);
        primitive_desc(const engine& where, const memory::desc& a, const memory::desc& b,
                       const memory::desc& c, const primitive_attr& with = {})
            : primitive_desc(where, a, b, memory::desc(), c, with) {}
    };
    matmul() = default;
    matmul(const primitive_desc& of) : primitive(of) {}
};

struct reorder : primitive {
    struct primitive_desc : description {
        primitive_desc(const engine&, const memory::desc& from, const engine&,
                       const memory::desc& to, const primitive_attr& with = {});
    };
    reorder() = default;
    reorder(const primitive_desc& of) : primitive(of) {}
};

struct concat : primitive {
    struct primitive_desc : description {
        primitive_desc(const engine&, const memory::desc& to, int axis,
                       const std::vector<memory::desc>& from, const primitive_attr& with = {});
    };
    concat() = default;
    concat(const primitive_desc& of) : primitive(of) {}
};

struct eltwise_forward : primitive {
    struct primitive_desc : description {
        primitive_desc(const engine&, prop_kind, algorithm kind, const memory::desc& from,
                       const memory::desc& to, float alpha, float beta,
                       const primitive_attr& with = {});
    };
    eltwise_forward() = default;
    eltwise_forward(const primitive_desc& of) : primitive(of) {}
};

struct softmax_forward : primitive {
    struct primitive_desc : description {
        primitive_desc(const engine&, prop_kind, algorithm kind, const memory::desc& from,
                       const memory::desc& to, int axis, const primitive_attr& with = {});
    };
    softmax_forward() = default;
    softmax_forward(const primitive_desc& of) : primitive(of) {}
};

struct softmax_backward : primitive {
    struct primitive_desc : description {
        primitive_desc(const engine&, algorithm kind, const memory::desc& diff_from,
                       const memory::desc& diff_to, const memory::desc& to, int axis,
                       const description& forward, const primitive_attr& with = {});
    };
    softmax_backward() = default;
    softmax_backward(const primitive_desc& of) : primitive(of) {}
};

struct shuffle_forward : primitive {
    struct primitive_desc : description {
        primitive_desc(const engine&, prop_kind, const memory::desc& from, const memory::desc& to,
                       int axis, int group, const primitive_attr& with = {});
    };
    shuffle_forward() = default;
    shuffle_forward(const primitive_desc& of) : primitive(of) {}
};

// Never there.
struct nowhere : primitive {
    struct primitive_desc : description {
        template <class... Sizes>
        explicit primitive_desc(const engine&, const Sizes&...) {}
    };
    nowhere() = default;
    nowhere(const primitive_desc&) {}
};
using lrn_forward = nowhere;
using lrn_backward = nowhere;
using pooling_forward = nowhere;
using pooling_backward = nowhere;

}  // namespace dnnl

// The sizes of a description, without a copy.
enum dnnl_query_t { dnnl_query_dims };
dnnl_status_t dnnl_memory_desc_query(const dnnl::memory::desc* of, dnnl_query_t,
                                     const dnnl_dims_t** found);
// C (m x n) = alpha op(A) op(B) + beta C, of rows.
dnnl_status_t dnnl_sgemm(char transposed_a, char transposed_b, int64_t m, int64_t n, int64_t k,
                         float alpha, const float* a, int64_t row_a, const float* b, int64_t row_b,
                         float beta, float* c, int64_t row_c);
