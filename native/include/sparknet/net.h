/*
 * A net in the engine: blobs, parameters and layers, run in one call a pass.
 *
 * Python decides what a net means (sparknet/graph, sparknet/layers) and hands
 * the engine resolved values: blobs with their final shapes, layers in order,
 * options by name. The engine computes.
 *
 * To build one: create it; add blobs and give them shapes; add parameters; add
 * layers over them; set each layer's options, gradients and loss weights;
 * prepare. After other shapes, prepare again. Blobs, parameters and layers are
 * numbered from 0 in the order in which they were added.
 *
 * A net serves one call at a time; calls from other threads wait. Different nets
 * run side by side.
 */
#ifndef SPARKNET_NET_H
#define SPARKNET_NET_H

#include <sparknet/ndarray.h>
#include <sparknet/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sn_net sn_net;

/* An empty net. `seed` starts every random number that its layers draw. */
SN_API sn_status sn_net_create(sn_net** out, int train, uint64_t seed);

/* Frees the net; NULL is ignored. Arrays from it stay valid. */
SN_API void sn_net_free(sn_net* net);

/*
 * Lets convolutions and products multiply numbers of bfloat16, and blobs between such layers
 * hold them. Parameters, their gradients and all sums stay float32. Prepare all layers
 * afterwards. SN_ERROR_ARRAY where sn_has_bf16 says 0.
 */
SN_API sn_status sn_net_use_bf16(sn_net* net);

/*
 * Lets a convolution or a product multiply numbers of eight bits, or no longer, where the steps of
 * its bottom are known. Weights get a step for each output; `bias` is added to each output then.
 * SN_ERROR_ARRAY where sn_has_int8 says 0. Prepare all layers afterwards.
 */
SN_API sn_status sn_net_use_int8(sn_net* net, int layer, int on, const float* bias, int64_t count);

/*
 * How a blob's values are rounded to eight bits: to multiples of `step`, -128 to 127 of them or 0
 * to 255; 0 says that nobody knows. With `may_be_int8` the layer that makes them may store them
 * so, and all others read what is left of them. Prepare all layers afterwards.
 */
SN_API sn_status sn_net_set_step(sn_net* net, int blob, float step, int is_signed, int may_be_int8);

/*
 * Lets later blobs reuse a blob's memory once the last layer that reads it has run, unless
 * sn_net_want_blob keeps the blob. In the test phase there is no backward pass then; in the train
 * phase values stay until the last backward pass that reads them, and so do gradients. A pass that
 * starts inside the net may find its inputs overwritten. Prepare all layers afterwards.
 */
SN_API sn_status sn_net_share_blobs(sn_net* net);

/*
 * Keeps a blob's values and gradients after each pass, from the next pass on. sn_net_blob_array
 * does so too.
 */
SN_API sn_status sn_net_want_blob(sn_net* net, int blob);

/* ---- Building ----------------------------------------------------------------- */

SN_API sn_status sn_net_add_blob(int* out, sn_net* net, const char* name);
/* The blob's values are lost if their number changes. */
SN_API sn_status sn_net_reshape_blob(sn_net* net, int blob, int ndim, const int64_t* shape);
/* The same, but the blob's values stay in their places. */
SN_API sn_status sn_net_extend_blob(sn_net* net, int blob, int ndim, const int64_t* shape);

/*
 * A learnable blob over two float32 arrays of one shape, row-major without gaps.
 * The net keeps their storage alive; others may write to it between passes.
 */
SN_API sn_status sn_net_add_param(int* out, sn_net* net, const sn_array* data,
                                  const sn_array* diff);

/* Uses another array of its shape for a parameter's values. Prepare all layers afterwards. */
SN_API sn_status sn_net_share_param(sn_net* net, int param, const sn_array* data);

/* A layer over blobs and parameters, by number. SN_ERROR_INDEX if one does not exist. */
SN_API sn_status sn_net_add_layer(int* out, sn_net* net, const char* type, const char* name,
                                  int bottom_count, const int* bottoms, int top_count,
                                  const int* tops, int param_count, const int* params);

/* Options of a layer, named as in the `values` of its Python plan. */
SN_API sn_status sn_layer_set_integers(sn_net* net, int layer, const char* key, int count,
                                       const int64_t* values);
SN_API sn_status sn_layer_set_reals(sn_net* net, int layer, const char* key, int count,
                                    const double* values);
SN_API sn_status sn_layer_set_text(sn_net* net, int layer, const char* key, const char* value);

/*
 * Whether the layer takes part in the backward pass, which bottoms get a gradient,
 * and which parameters do: one byte a bottom, one byte a parameter.
 */
SN_API sn_status sn_layer_set_gradients(sn_net* net, int layer, int backward,
                                        const uint8_t* propagate, const uint8_t* learns);

/* One weight a top; 0 for tops that are no loss. */
SN_API sn_status sn_layer_set_loss_weights(sn_net* net, int layer, const float* weights);

/*
 * Prepares the kernels of the layers first to last for the shapes and options that are set; kernels
 * that are ready stay as they are. A layer refuses to run before that, and again after its shapes
 * or options have changed; the others run.
 */
SN_API sn_status sn_net_prepare(sn_net* net, int first, int last);

/* ---- Running ------------------------------------------------------------------ */

/* Runs the layers first to last, in order; `loss` is the weighted sum of their loss tops. */
SN_API sn_status sn_net_forward(double* loss, sn_net* net, int first, int last);

/*
 * Runs the layers first down to last, on as many threads as the forward pass before. Parameter
 * gradients add up, or with `overwrite` start again from zero; blob gradients are replaced.
 */
SN_API sn_status sn_net_backward(sn_net* net, int first, int last, int overwrite);

/*
 * The layer at fault when this thread's last call was on this net and returned
 * SN_ERROR_LAYER; else -1.
 */
SN_API int sn_net_failed_layer(const sn_net* net);

/* Restarts the random numbers of all layers. */
SN_API sn_status sn_net_seed(sn_net* net, uint64_t seed);

/*
 * How often each layer has drawn random numbers since they were started; `out` has room for one
 * number a layer. Set again in a net of the same seed, the layers go on with the same numbers.
 */
SN_API sn_status sn_net_draws(uint64_t* out, sn_net* net);
SN_API sn_status sn_net_set_draws(sn_net* net, const uint64_t* draws);

/* ---- Reading blobs ------------------------------------------------------------ */

/* A blob's current shape: a kernel may change that of its tops (Filter). At most 32 axes. */
SN_API sn_status sn_net_blob_shape(int* ndim, int64_t* shape, sn_net* net, int blob);

/*
 * A blob's values, or with `diff` its gradient, as a writable view. Values in
 * a layout of oneDNN's are converted to rows first. While the view exists, each pass
 * writes the newest values into it and reads what was written there.
 * The view outlives the net; it loses its connection to the blob when the blob grows.
 */
SN_API sn_status sn_net_blob_array(sn_array** out, sn_net* net, int blob, int diff);

/*
 * Uses an array of its shape as a blob's storage until another one is adopted: float32, row-major,
 * without gaps. The net keeps the array's storage alive and may write to it. Where views of the
 * blob exist, the values are copied instead, the array is released, and `taken` is 0.
 */
SN_API sn_status sn_net_adopt(int* taken, sn_net* net, int blob, const sn_array* values);

/* ---- Timing ------------------------------------------------------------------- */

/*
 * Switches the clocks of all layers on, from 0, or off. They are off at first, and
 * then nothing is measured.
 */
SN_API sn_status sn_net_time(sn_net* net, int on);

/*
 * The nanoseconds that each layer's forward and backward passes have taken since the
 * clocks were switched on: one number a layer. Work that a layer
 * does together with another one counts for the other.
 */
SN_API sn_status sn_net_times(double* forward, double* backward, sn_net* net);

/*
 * Which loops compute a layer's forward pass (part 0), the gradients of its bottoms (1) and those
 * of its parameters (2), and why, for people: the first `size` - 1 bytes. Empty for a layer that
 * has one way alone, and for a part that is not computed.
 */
SN_API sn_status sn_net_method(char* out, size_t size, sn_net* net, int layer, int part);

/* Bytes that a net holds now, besides its parameters' rows and what its layers keep. */
typedef struct sn_net_bytes {
    int64_t rows;    /* blobs and their gradients, row-major */
    int64_t layouts; /* the same, and parameters, in layouts of oneDNN's */
    int64_t scratch; /* temporary memory that all layers share */
    int64_t pages;   /* the most that rows, layouts and values kept by layers had at one time */
} sn_net_bytes;

SN_API sn_status sn_net_memory(sn_net_bytes* out, sn_net* net);

/* Gives the system the memory that no blob holds now; the next pass takes it anew. */
SN_API sn_status sn_net_trim(sn_net* net);

/* The layer types that the engine computes, by number; NULL after the last. */
SN_API const char* sn_kernel_type(int number);

#ifdef __cplusplus
}
#endif

#endif
