// The engine's memory: zeroed, aligned, counted, in huge pages where it is large.
#pragma once

#include <cstddef>
#include <memory>

namespace sn {

// std::bad_alloc if there is no memory for it (claim.hpp).  Pages that nobody touches cost nothing.
std::shared_ptr<float> take_pages(size_t bytes);

}  // namespace sn
