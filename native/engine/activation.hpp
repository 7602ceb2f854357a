// oneDNN's value-by-value functions, in whatever layout the input has without padding: around that
// its loops make numbers of NaN.
#pragma once

#include "elementwise.hpp"
#include "primitive.hpp"

namespace sn {

class Activation {
   public:
    // Primitives are made for a number of threads: the next run makes its own.
    void reset() { primitive_ = {}; }

    void run(dnnl::algorithm algorithm, const Tensor& from, Tensor& to, float alpha = 0,
             float beta = 0) {
        if (from.count() == 0) return;
        auto desc = from.newest();
        if (values(desc) != from.count()) desc = retyped(from.plain(), desc.get_data_type());
        if (!primitive_ || desc != desc_) make(algorithm, desc, alpha, beta);
        const auto source = from.read(desc), target = to.write(desc);
        sn::run(primitive_, {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, target}});
    }

   private:
    void make(dnnl::algorithm algorithm, const dnnl::memory::desc& desc, float alpha, float beta) {
        primitive_ = dnnl::eltwise_forward({cpu(), dnnl::prop_kind::forward_inference, algorithm,
                                            desc, desc, alpha, beta, attributes()});
        desc_ = desc;
    }

    dnnl::eltwise_forward primitive_;
    dnnl::memory::desc desc_;
};

}  // namespace sn
