#include "pixels.hpp"

#include <cstring>

#include "../engine/parallel.hpp"

namespace sn {

void move_pixels(const dnnl::memory& from, int64_t every, const dnnl::memory& to) {
    const auto all = from.get_desc(), some = to.get_desc();
    const auto size = static_cast<int64_t>(dnnl::memory::data_type_size(all.get_data_type()));
    const auto in = all.get_dims(), out = some.get_dims();
    const int64_t pixel = in[1] * size, row = in[3] * pixel, image = in[2] * row;
    const auto* values = static_cast<const char*>(from.get_data_handle());
    auto* picked = static_cast<char*>(to.get_data_handle());
    parallel_each(out[0] * out[2], out[3] * pixel / 4, [=](int64_t line) {
        const char* first = values + line / out[2] * image + line % out[2] * every * row;
        for (int64_t x = 0; x < out[3]; ++x)
            std::memcpy(picked + (line * out[3] + x) * pixel, first + x * every * pixel,
                        static_cast<size_t>(pixel));
    });
}

}  // namespace sn
