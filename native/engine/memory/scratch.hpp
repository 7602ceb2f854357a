// Memory that one primitive after the other uses; it grows to what the greediest needs.
#pragma once

#include <cstddef>
#include <memory>

namespace sn {

class Scratch {
   public:
    void* room(size_t bytes);
    size_t bytes() const { return size_; }

   private:
    std::shared_ptr<float> memory_;
    size_t size_ = 0;
};

}  // namespace sn
