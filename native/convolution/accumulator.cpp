#include "accumulator.hpp"

#include "../engine/net.hpp"
#include "../engine/pass.hpp"

namespace sn {

using dnnl::memory;

memory Accumulator::target(const memory::desc& wanted) {
    pages_ = pages().take(wanted.get_size());
    memory_ = {wanted, cpu(), pages_.get()};
    return memory_;
}

void Accumulator::give(const Layer& layer, size_t param, const memory::desc& plain) {
    bool adds = true;
    float* diff = layer.param_diff(param, adds);
    dnnl::reorder& giving = adds ? adding_ : putting_;
    if (!giving) {
        auto with = attributes();
        dnnl::post_ops sum;
        sum.append_sum(1.0F);
        if (adds) with.set_post_ops(sum);
        giving = dnnl::reorder({cpu(), memory_.get_desc(), cpu(), plain, with});
    }
    run(giving, {{DNNL_ARG_FROM, memory_}, {DNNL_ARG_TO, memory(plain, cpu(), diff)}});
}

}  // namespace sn
