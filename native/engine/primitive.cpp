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

namespace {
// The temporary memory that the primitive expects from its caller.
size_t scratch_bytes(const dnnl::primitive& primitive) {
    const auto desc =
        dnnl_primitive_desc_query_md(primitive.get_primitive_desc(), dnnl_query_scratchpad_md, 0);
    return desc ? dnnl_memory_desc_get_size(desc) : 0;
}
}  // namespace

void run(const dnnl::primitive& primitive, const Arguments& arguments) {
    const size_t bytes = scratch_bytes(primitive);
    if (bytes == 0) {
        primitive.execute(stream(), arguments);
    } else {
        const dnnl::memory::desc desc({static_cast<int64_t>(bytes)}, dnnl::memory::data_type::u8,
                                      dnnl::memory::format_tag::x);
        Arguments all = arguments;
        all.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(desc, cpu(), scratch().room(bytes)));
        primitive.execute(stream(), all);
    }
    stream().wait();
}

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
    if (steps)
        arguments[DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC] = dnnl::memory(plain_desc({1}), cpu(), &by);
    sn::run(primitive_, arguments);
}

}  // namespace sn
