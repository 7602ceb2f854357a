// A blob and the parts it falls into along an axis: what Concat and Slice share.
#pragma once

#include <vector>

#include "../engine/move.hpp"
#include "formats.hpp"

namespace sn {

class Pieces {
   public:
    void reshape(const Shape& whole, const std::vector<Shape>& parts, size_t axis);
    void join(const std::vector<Tensor*>& parts, Tensor& whole);
    // Parts that are null are left out.
    void cut(const Tensor& whole, const std::vector<Tensor*>& parts);

   private:
    bool join_int8(const std::vector<Tensor*>& parts, Tensor& whole);
    bool join_blocked(const std::vector<Tensor*>& parts, Tensor& whole);
    bool cut_blocked(const Tensor& whole, Tensor& part, size_t i);
    dnnl::memory::desc window(const dnnl::memory::desc& whole, size_t i) const;
    void make(const std::vector<dnnl::memory::desc>& layouts);

    Shape whole_;
    std::vector<Shape> parts_, offsets_;
    size_t axis_ = 0;
    int64_t outer_ = 0, inner_ = 0;

    // The layouts that join was last made for.
    std::vector<dnnl::memory::desc> layouts_, sources_;
    dnnl::memory::desc target_;
    dnnl::concat concat_;
    std::vector<Move> cuts_;
};

}  // namespace sn
