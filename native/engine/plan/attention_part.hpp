// What a layer may be in an attention, as its kernel says.
#pragma once

#include <optional>

#include "../layer.hpp"

namespace sn {

enum class AttentionPart {
    none,
    product,
    probabilities,
    choice,  // of two values by a condition
    bias,    // one number for each place along some axes
    size,    // |x|
    bound,   // whether a value lies above one
    power,   // (scale x + shift)^power
};

// A kernel that can be a part.
struct HasAttentionPart {
    virtual ~HasAttentionPart() = default;
    virtual AttentionPart attention_part() const = 0;
};

template <AttentionPart part>
struct IsAttentionPart : HasAttentionPart {
    AttentionPart attention_part() const final { return part; }
};

inline bool is_part(const Layer& layer, AttentionPart part) {
    const auto* has = dynamic_cast<const HasAttentionPart*>(layer.kernel.get());
    return has && has->attention_part() == part;
}

}  // namespace sn
