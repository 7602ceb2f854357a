// What one pass computes of an attention: softmax(scale Q K^T + terms) V, where Q, K, V, the terms
// and the result lie in their blobs in any order.
#pragma once

#include <vector>

#include "strided.hpp"

namespace sn {

struct Blob;
struct Layer;

struct Attention {
    struct Operand {
        Blob* blob = nullptr;
        Matrices at;
        bool operator==(const Operand& other) const { return blob == other.blob && at == other.at; }
    };
    // K is (depth x keys), as the product reads it.
    Operand queries, keys, values;
    std::vector<Operand> terms;
    // One value that takes the place of a row's probabilities if they are no numbers.
    Operand instead;
    float scale = 1;
    int64_t batches = 0, rows = 0, columns = 0, depth = 0, width = 0;
    // Where the result lies in the blob of the last layer that is computed.
    Matrices result;
    // All layers before the last product that are computed with it.
    std::vector<Layer*> members;

    bool operator==(const Attention& other) const {
        return queries == other.queries && keys == other.keys && values == other.values &&
               terms == other.terms && instead == other.instead && scale == other.scale &&
               batches == other.batches && rows == other.rows && columns == other.columns &&
               depth == other.depth && width == other.width && result == other.result &&
               members == other.members;
    }

    // visit(operand) for each of them; parameters too.
    template <class F>
    void each_source(F&& visit) const {
        for (const Operand* one : {&queries, &keys, &values}) visit(*one);
        for (const Operand& one : terms) visit(one);
        if (instead.blob) visit(instead);
    }
};

}  // namespace sn
