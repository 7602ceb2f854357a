// The layout of a net's images in float32: depthwise convolutions, and the products between them,
// read and write blocks of sixteen channels faster than channels last.
#include <algorithm>

#include "../net.hpp"

namespace sn {

bool Net::blocks_channels() const {
    if (!blocks_channels_)
        blocks_channels_ = std::any_of(layers.begin(), layers.end(), [](const Layer& layer) {
            return layer.kernel->prefers_blocks(layer);
        });
    return *blocks_channels_;
}

}  // namespace sn
