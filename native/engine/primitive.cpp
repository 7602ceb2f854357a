#include "primitive.hpp"

#include <cstring>

#include "bfloat16.hpp"
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
        from_ = before, to_ = after, threads_ = threads(), steps_ = steps;
    }
    if (weights_) return weights_->run(values_of<float>(from), to.get_data_handle());
    Arguments arguments = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    float by = from_step / to_step;
    if (steps) arguments.add(DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, {plain_desc({1}), cpu(), &by});
    sn::run(primitive_, arguments);
}

}  // namespace sn
