// Where the windows of Convolution and Deconvolution lie, and in which type they are multiplied.
#pragma once

#include "../engine/layer.hpp"
#include "plane_lines.hpp"

namespace sn {

// Whether each channel has a window of its own: the one definition is in layers/convolution.py.
inline bool is_depthwise(const Layer& layer) {
    return layer.options.flag("depthwise", false);
}

// The geometry of a convolution or, in reverse, of a deconvolution, as oneDNN wants it.
struct Window {
    // With the layers fused into it, a convolution may skip pixels.
    Window(const Layer& layer, bool reverse, bool fused);

    // Of an image with a square window.
    PlaneWindow plane() const;
    // The same memory by the axes of the blob.
    dnnl::memory::desc by_axes(const dnnl::memory::desc& images) const;

    dnnl::memory::dims source, target, weights, strides, dilations, before, after;
    dnnl::memory::desc plain_weights, plain_bias;
    bool bias = false;
    // Whether these are images of two axes, and no deconvolution.
    bool is_image = false;
    // Whether images of one column, or lines of values, are described as images of one row.
    bool is_turned = false, is_line = false;
    // Whether channels may lie innermost: for images of two axes that are no pictures.  In bfloat16
    // oneDNN chooses that itself, but for depthwise convolutions.
    bool is_plane = false, may_be_last = false;
    // Whether passes with fewer products are used even where they are slower: tests ask for that.
    bool few_products = false;
    // Whether each channel has a window of its own, and whether the weights of such a window of two
    // axes may be learned.
    bool depthwise = false, learns_depthwise = false;
    int64_t outputs = 0;
    // The type of the factors; weights' gradients are float32.
    dnnl::memory::data_type factors = dnnl::memory::data_type::f32;

   private:
    bool gains_by_turning(const Layer& layer) const;
    void turn(dnnl::memory::dims& steps);
};

}  // namespace sn
