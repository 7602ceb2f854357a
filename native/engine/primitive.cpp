#include "primitive.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "bfloat16.hpp"
#include "int8.hpp"
#include "move.hpp"
#include "parallel.hpp"
#include "pass.hpp"

namespace sn {

dnnl::primitive_attr attributes() {
    dnnl::primitive_attr made;
    made.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return made;
}

#if defined(SPARKNET_ONEDNN)
namespace {
// The temporary memory that the primitive expects from its caller.
size_t scratch_bytes(const dnnl::primitive& primitive) {
    const auto desc =
        dnnl_primitive_desc_query_md(primitive.get_primitive_desc(), dnnl_query_scratchpad_md, 0);
    return desc ? dnnl_memory_desc_get_size(desc) : 0;
}
}  // namespace

void run(const dnnl::primitive& primitive, const Arguments& arguments) {
    std::vector<dnnl_exec_arg_t> all;
    all.reserve(arguments.size() + 1);
    for (const auto& [name, memory] : arguments) all.push_back({name, memory.get(true)});
    if (const size_t bytes = scratch_bytes(primitive); bytes > 0)
        all.push_back({DNNL_ARG_SCRATCHPAD, scratch().memory(bytes).get()});
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), stream().get(),
                                                   static_cast<int>(all.size()), all.data()),
                            "could not execute a primitive");
    stream().wait();
}
#else
void run(const dnnl::primitive&, const Arguments&) {
    dnnl::refuse();
}
#endif

dnnl::memory zeroed(const dnnl::memory::desc& desc) {
    dnnl::memory made(desc, cpu());
    std::memset(made.get_data_handle(), 0, desc.get_size());
    return made;
}

namespace {
// Whether values in float32 become numbers of eight bits in the same places, without gaps.
bool rounds_in_place(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
    const auto type = to.get_data_type();
    return (type == dnnl::memory::data_type::s8 || type == dnnl::memory::data_type::u8) &&
           from.get_data_type() == dnnl::memory::data_type::f32 &&
           from.get_size() == 4 * to.get_size() && from.get_inner_nblks() == 0 &&
           to.get_inner_nblks() == 0 && from.get_dims() == to.get_dims() &&
           from.get_strides() == to.get_strides() &&
           to.get_size() == static_cast<size_t>(count(to.get_dims()));
}

template <class T>
void round_values(const float* x, T* y, int64_t size, float by) {
    constexpr float least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    parallel(size, [=](int64_t begin, int64_t end) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
            const float scaled = x[i] * by, low = scaled < least ? least : scaled;
            y[i] = static_cast<T>(static_cast<int32_t>(std::nearbyintf(low > most ? most : low)));
        }
    });
}
}  // namespace

void Move::run(const dnnl::memory& from, float from_step, const dnnl::memory& to, float to_step) {
    const auto before = from.get_desc(), after = to.get_desc();
    const bool steps = from_step != to_step;
    if (!primitive_ || threads_ != threads() || before != from_ || after != to_ ||
        steps != steps_) {
        auto with = attributes();
        if (steps) with.set_scales_mask(DNNL_ARG_SRC, 0);
        primitive_ =
            dnnl::reorder(dnnl::reorder::primitive_desc(cpu(), before, cpu(), after, with));
        weights_ = steps ? std::nullopt : NarrowWeights::of(before, after);
        rounds_ = steps && rounds_in_place(before, after);
        from_ = before, to_ = after, threads_ = threads(), steps_ = steps;
    }
    if (weights_) return weights_->run(values_of<float>(from), to.get_data_handle());
    Arguments arguments = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    float by = from_step / to_step;
    if (rounds_)
        return typed_bytes(after, [&](auto type) {
            round_values(values_of<float>(from), values_of<decltype(type)>(to),
                         static_cast<int64_t>(after.get_size()), by);
        });
    if (steps) arguments.add(DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, {plain_desc({1}), cpu(), &by});
    sn::run(primitive_, arguments);
}

}  // namespace sn
