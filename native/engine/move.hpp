// Copies of values from one layout to another.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace sn {

// A reorder that is kept from one pass to the next.
class Move {
   public:
    void run(const dnnl::memory& from, const dnnl::memory& to);

   private:
    dnnl::memory::desc from_, to_;
    int threads_ = 0;
    dnnl::reorder primitive_;
};

}  // namespace sn
