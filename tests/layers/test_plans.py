"""Shapes that layers give and inputs that they refuse: a row for each."""

import pytest

from sparknet.errors import LayerError
from sparknet.layers import LAYERS, Shape
from tests.layers.nets import plan, shapes_of_params

ACCEPTED = """
Accuracy | top_k: 2 | 2x3x4 2x4 -> () 3 |  | axis=1, outer=2, channels=3, inner=4, top_k=2, ignore_label=None
ArgMax |  | 2x3x4 -> 2x1x1
ArgMax |  | 2 -> 2x1x1
ArgMax | top_k: 2 | 2x3x4x5x6 -> 2x1x2x1x1
ArgMax | top_k: 3 out_max_val: true | 2x3 -> 2x2x3
ArgMax | top_k: 2 axis: -1 out_max_val: true | 4x3 -> 4x2
Axpy |  | 2x3 2x3x4x5 2x3x4x5 -> 2x3x4x5
Axpy |  | 2x3x1x1 2x3x4x5 2x3x4x5 -> 2x3x4x5
BatchReindex |  | 5x2x3 7 -> 7x2x3 |  | num=5, inner=6
Bias |  | 2x3x4 -> 2x3x4 | 3
Bias | axis: 0 num_axes: 2 | 2x3x4 -> 2x3x4 | 2x3
Bias | num_axes: -1 | 2x3x4 -> 2x3x4 | 3x4
Bias | axis: -1 | 2x3x4 4 -> 2x3x4 |  | axis=2, num_axes=1
Concat |  | 2x3x4 2x5x4 -> 2x8x4
Concat | axis: -1 | 2x3x4 2x3x6 -> 2x3x10
Concat | concat_dim: 0 | 2x3x4 5x3x4 -> 7x3x4
Concat |  | 2x0 2x3 -> 2x3
ContrastiveLoss |  | 4x3 4x3x1x1 4x1 -> () |  | num=4, channels=3, margin=1, legacy_version=False
Convolution | num_output: 1 kernel_size: 4 stride: 2 | 1x1x3x3 -> 1x1x1x1 | 1x1x4x4 1
Convolution | num_output: 2 kernel_size: 1 bias_term: false | 1x3x4 1x3x4 -> 1x2x4 1x2x4 | 2x3x1
Convolution | num_output: 3 kernel_size: 1 | 4x5 -> 4x3 | 3x5 3
Convolution | num_output: 4 kernel_size: 3 stride: 2 pad: 1 group: 2 dilation: 2 | 2x6x9x11 -> 2x4x4x5 | 4x3x3x3 4 | axis=1, num_output=4, group=2, bias_term=True, depthwise=False, kernel=(3, 3), stride=(2, 2), pad=(1, 1), dilation=(2, 2)
Convolution | num_output: 1 kernel_h: 1 kernel_w: 5 pad_w: 2 stride_h: 2 stride_w: 1 | 1x1x7x10 -> 1x1x4x10 | 1x1x1x5 1 | pad=(0, 2)
Crop |  | 2x3x6x8 7x2x4x5 -> 2x3x4x5 |  | axis=2, offset=(0, 0, 0, 0)
Crop | axis: 1 offset: 1 | 2x3x6x8 7x2x4x5 -> 2x2x4x5 |  | axis=1, offset=(0, 1, 1, 1)
Crop | axis: -2 offset: [2, 3] | 2x3x6x8 7x2x4x5 -> 2x3x4x5 |  | axis=2, offset=(0, 0, 2, 3)
Deconvolution | num_output: 4 kernel_size: 4 stride: 2 pad: 1 group: 2 | 1x6x5x7 -> 1x4x10x14 | 6x2x4x4 4
DepthwiseConvolution | num_output: 6 kernel_size: 3 pad: 1 group: 6 bias_term: false | 1x6x5x5 -> 1x6x5x5 | 6x1x3x3 | group=6, depthwise=True
DetectionOutput | num_classes: 3 nms_param { nms_threshold: 0.45 top_k: 400 } | 2x20 2x15 1x2x20 -> 1x1x1x7 |  | priors=5, top_k=400, code_type='corner', confidence_threshold=None
DummyData | shape { dim: 2 } data_filler { type: 'uniform' } |  -> 2 2 |  | refill=(True, True)
DummyData | num: [2, 3] channels: 4 height: 5 width: 6 |  -> 2x4x5x6 3x4x5x6 |  | refill=(False, False)
Eltwise |  | 2x3 2x3 -> 2x3 |  | stable_prod_grad=True, operation='sum', coeff=(1.0, 1.0)
Eltwise | coeff: [1, -2] | 2x3 2x3 -> 2x3 |  | operation='sum', coeff=(1.0, -2.0)
Embed | num_output: 3 input_dim: 7 | 2x5 -> 2x5x3 | 7x3 3
Embed | num_output: 3 input_dim: 7 bias_term: false | 2 -> 2x3 | 7x3
EuclideanLoss |  | 4x3 4x3x1 -> () |  | num=4
Filter |  | 4x3 4x2x2 4x1 -> 4x3 4x2x2 |  | num=4
Flatten |  | 2x3x4x5 -> 2x60
Flatten | axis: 2 | 2x3x4x5 -> 2x3x20
Flatten | axis: 0 end_axis: -2 | 2x3x4x5 -> 24x5
Flatten | axis: 1 end_axis: 1 | 2x3x4x5 -> 2x3x4x5
Flatten | axis: 2 end_axis: 1 | 2x3x4x5 -> 2x3x1x4x5
HDF5Output | file_name: 'f.h5' | 3x2x4 3 ->  |  | data=(3, 2, 4, 1), label=(3, 1, 1, 1)
HingeLoss | norm: L2 | 4x3x2 4x1 -> () |  | num=4, channels=6, norm='l2'
Im2col | kernel_size: 3 stride: 2 dilation: 2 | 2x3x9x8 -> 2x27x3x2
InnerProduct | num_output: 5 | 2x3x4 -> 2x5 | 5x12 5
InnerProduct | num_output: 5 axis: 2 | 2x3x4 -> 2x3x5 | 5x4 5
InnerProduct | num_output: 5 axis: -1 bias_term: false | 2x3x4 -> 2x3x5 | 5x4
InnerProduct | num_output: 5 transpose: true | 2x3x4 -> 2x5 | 12x5 5
InnerProduct | num_output: 5 axis: 0 | 2x3x4 -> 5 | 5x24 5
InnerProduct | num_output: 5 axis: -2 | 2x3x4 -> 2x5 | 5x12 5 | axis=1, num_output=5, transpose=False, bias_term=True, normalize=False
Input | shape { dim: 2 dim: 3 } |  -> 2x3 2x3
Input | shape { dim: 2 } shape { dim: 0 dim: 5 } |  -> 2 0x5
Input |  |  -> () ()
Interp | height: 33 width: 65 | 2x3x7x9 -> 2x3x33x65
Interp | zoom_factor: 8 | 2x3x7x9 -> 2x3x49x65
Interp | shrink_factor: 4 | 2x3x7x9 -> 2x3x2x3
Interp | zoom_factor: 2 shrink_factor: 4 | 2x3x7x9 -> 2x3x3x5
Interp | zoom_factor: 2 pad_beg: -1 pad_end: -1 | 2x3x7x9 -> 2x3x9x13
Interp | zoom_factor: 2 height: 5 width: 5 | 2x3x7x9 -> 2x3x13x17
Interp |  | 2x3x7x9 2x1x20x30 -> 2x3x20x30
LRN |  | 2x3x4x5 -> 2x3x4x5 |  | local_size=5, alpha=1.0, beta=0.75, k=1.0, norm_region='across_channels'
LRN | norm_region: WITHIN_CHANNEL | 2x3x4x5 -> 2x3x4x5 |  | norm_region='within_channel'
LSTM | num_output: 5 | 4x2x3x2 4x2 -> 4x2x5 | 20x6 20 20x5 | steps=4, streams=2, inputs=6, num_output=5, static_inputs=0, expose_hidden=False, states=2
LSTM | num_output: 5 expose_hidden: true | 4x2x3x2 4x2 1x2x5 1x2x5 -> 4x2x5 1x2x5 1x2x5 | 20x6 20 20x5
LSTMUnit |  | 1x3x4 1x3x16 1x3 -> 1x3x4 1x3x4 |  | streams=3, units=4
MVN |  | 2x3 -> 2x3x1x1 |  | normalize_variance=True, across_channels=False
MemoryData | batch_size: 2 channels: 3 height: 4 width: 5 |  -> 2x3x4x5 2
MultiBoxLoss | num_classes: 3 code_type: CENTER_SIZE | 2x20 2x15 1x2x20 1x1x6x8 -> () |  | priors=5, code_type='center_size', mining_type='max_negative', normalization='valid'
MultiBoxLoss | do_neg_mining: false num_classes: 3 | 2x20 2x15 1x2x20 1x1x6x8 -> () |  | mining_type='none'
MultinomialLogisticLoss |  | 4x3 4 -> () |  | num=4, channels=3
Normalize |  | 2x3x4x5 -> 2x3x4x5 | () | across_spatial=True
Normalize | channel_shared: false | 2x3x4x5 -> 2x3x4x5 | 3
PReLU |  | 2x3x4x5 -> 2x3x4x5 | 3 | channel_shared=False, outer=2, channels=3, inner=20
PReLU | channel_shared: true filler { value: 2 } | 2x3 -> 2x3 | ()
Parameter | shape { dim: 2 dim: 3 } |  -> 2x3 | 2x3
Permute | order: [0, 2, 3, 1] | 2x3x4x5 -> 2x4x5x3
Permute |  | 2x3x4x5 -> 2x3x4x5
Permute | order: 3 | 2x3x4x5 -> 5x2x3x4 |  | order=(3, 0, 1, 2)
Pooling | kernel_size: 3 stride: 2 | 2x3x6x7 -> 2x3x3x3
Pooling | kernel_size: 3 stride: 2 round_mode: FLOOR | 2x3x6x7 -> 2x3x2x3
Pooling | kernel_size: 2 stride: 2 pad: 1 | 2x3x4x5 -> 2x3x3x3
Pooling | kernel_size: 4 stride: 2 | 2x3x3x3 -> 2x3x1x1
Pooling | kernel_h: 1 kernel_w: 3 stride_h: 1 stride_w: 2 pad_h: 0 pad_w: 1 | 2x3x4x6 -> 2x3x4x4
Pooling | global_pooling: true | 2x3x5x7 -> 2x3x1x1 |  | kernel=(5, 7)
Pooling | kernel_size: 2 stride: 2 | 1x2x4x4 -> 1x2x2x2 1x2x2x2
Pooling | pool: AVE kernel_size: 3 stride: 2 | 1x1x7x7 -> 1x1x3x3 |  | method='ave', kernel=(3, 3), stride=(2, 2), pad=(0, 0), round_mode='ceil', global_pooling=False
RNN | num_output: 5 expose_hidden: true | 4x2x3x2 4x2 2x7 1x2x5 -> 4x2x5 1x2x5 | 5x6 5 5x7 5x5 5x5 5 | static_inputs=7
ROIPooling | pooled_h: 6 pooled_w: 7 spatial_scale: 0.0625 | 2x3x14x14 10x5 -> 10x3x6x7 |  | spatial_scale=0.0625, pad_ratio=0.0, pooled=(6, 7)
Reduction | axis: 0 | 2x3x4 -> ()
Reduction | axis: 1 | 2x3x4 -> 2
Reduction | axis: -1 | 2x3x4 -> 2x3
Reduction | operation: SUMSQ coeff: 0.5 | 2x3 -> () |  | operation='sumsq', coeff=0.5, axis=0
Reshape | shape { dim: 4 dim: 6 } | 2x3x4 -> 4x6
Reshape | shape { dim: 0 dim: -1 } | 2x3x4 -> 2x12
Reshape | shape { dim: 2 dim: -1 dim: 2 } axis: 1 | 2x3x4 -> 2x2x3x2
Reshape | shape { dim: 1 } axis: 1 num_axes: 0 | 2x3x4 -> 2x1x3x4
Reshape | shape { dim: 1 } axis: -1 | 2x3x4 -> 2x3x4x1
Reshape | shape { dim: 12 } axis: -3 | 2x3x4 -> 2x12
Reshape | shape { dim: 6 } num_axes: 2 | 2x3x4 -> 6x4
Reshape | shape { dim: -1 } | 2x3x4 -> 24
Scale |  | 2x3x4 -> 2x3x4 | 3 | axis=1
Scale | bias_term: true | 2x3x4 -> 2x3x4 | 3 3 | axis=1
Scale | axis: 0 num_axes: 2 | 2x3x4 -> 2x3x4 | 2x3 | axis=0
Scale | axis: -2 num_axes: -1 | 2x3x4 -> 2x3x4 | 3x4 | axis=1
Scale | num_axes: 0 | 2x3x4 -> 2x3x4 | () | axis=0
Scale | axis: 0 bias_term: true | 2x3x4 2x3 -> 2x3x4 | 2x3 | bias_term=True, axis=0, num_axes=2
Scale |  | 2x3x4 () -> 2x3x4 |  | axis=0
ShuffleChannel | group: 3 | 2x6x4x4 -> 2x6x4x4 |  | group=3
ShuffleChannel |  | 2x6 -> 2x6x1x1 |  | group=1
SigmoidCrossEntropyLoss |  | 4x3x2 4x6 -> () |  | outer=4, inner=6
Silence |  | 2 () 0x3 ->
Slice |  | 2x6 -> 2x2 2x2 2x2
Slice | slice_point: 6 | 2x6 -> 2x6 2x0
Slice | axis: -2 | 2x6 -> 1x6 1x6
Slice | slice_dim: 0 | 2x6 -> 2x6
Slice | slice_point: [1, 4] | 2x6 -> 2x1 2x3 2x2 |  | axis=1, bounds=(0, 1, 4, 6)
SmoothL1Loss | sigma: 3 | 4x8 4x8 4x8 -> () |  | num=4, sigma2=9, inside=True, outside=False
Softmax | axis: -2 | 2x3x4x5 -> 2x3x4x5 |  | axis=2, outer=6, channels=4, inner=5
Split |  | 2x3 -> 2x3 2x3 2x3
Tile | axis: -1 tiles: 3 | 2x4 -> 2x12 |  | axis=1, tiles=3
Upsample |  | 1x2x3x5 1x2x3x5 -> 1x2x6x10 |  | method='unpool'
Upsample | scale: 3 | 1x2x3x5 1x2x3x5 -> 1x2x9x15 |  | method='unpool'
Upsample | scale_h: 2 scale_w: 4 | 1x2x3x5 1x2x3x5 -> 1x2x6x20 |  | method='unpool'
Upsample | pad_out_h: true | 1x2x3x5 1x2x3x5 -> 1x2x5x10 |  | method='unpool'
Upsample | upsample_h: 7 upsample_w: 11 | 1x2x3x5 1x2x3x5 -> 1x2x7x11 |  | method='unpool'
Upsample | scale: 3 | 1x2x3x5 -> 1x2x9x15 |  | method='repeat', scale=3
"""  # noqa: E501
"""Type, options, bottoms -> tops, parameters, some of the values."""

REFUSED = r"""
Accuracy |  | 4x3 3 | needs 4 labels; there are 3
Accuracy | top_k: 0 | 2x3 2 | top_k 0 .*at least 1
Accuracy | top_k: 4 | 2x3 2 | top_k 4 .*more than the number of classes, 3
ArgMax | top_k: 0 | 2x3x4 | top_k 0 must be from 1 to the number of values, 12
ArgMax | top_k: 13 | 2x3x4 | top_k 13 must be from 1 to the number of values, 12
ArgMax | top_k: 4 axis: 1 | 2x3x4 | top_k 4 must be from 1 to the number of values, 3
ArgMax | axis: 3 | 2x3x4 | axis 3 is out of range
Axpy |  | 2x3 2x3x4x5 2x3x5x4 | x 2 x 3 x 4 x 5 and y 2 x 3 x 5 x 4 must have one shape
Axpy |  | 2x4 2x3x4x5 2x3x4x5 | the scale 2 x 4 must have one value
Axpy |  | 2x3x4x1 2x3x4x5 2x3x4x5 | must have one value
Axpy |  | 2 2 2 | at least 2 axes
Axpy |  | 2x3 2x3 | takes 3 bottoms; it has 2
BatchNorm |  | 4 | at least 2 axes
BatchReindex |  | 5x2 7x1 | exactly 1 axis; their shape is 7 x 1
BatchReindex |  | () 7 | the data needs at least 1 axis
Bias | num_axes: -2 | 2x3 | num_axes must be at least 0, or -1
Bias | num_axes: 2 | 2x3 | 2 bias axes from axis 1 on reach past the input 2 x 3
Bias | axis: 2 | 2x3 | axis 2 is out of range
Bias |  | 2x3 4 | the bias blob 4 does not match the input 2 x 3 from axis 1 on
Bias |  | 2x3 3x1 | reach past the input
Bias |  | 2x3 3 3 | takes 1 to 2 bottoms; it has 3
Concat |  | 2x3x4 2x3x5 | may differ in axis 1 only
Concat |  | 2x3x4 2x3 | may differ in axis 1 only
Concat | axis: 1 concat_dim: 1 | 2x3 | give axis or concat_dim, not both
Concat | concat_dim: 4294967295 | 2x3 | concat_dim 4294967295 is out of range
Concat |  | 2147483647x1 2147483647x1 | more than 2147483647 values
ContrastiveLoss |  | 4x3 4x2 4 | vectors of one length
ContrastiveLoss |  | 4x3x2 4x3x2 4 | vectors of one length
ContrastiveLoss |  | 4x3 4x3 3 | 4 pairs need as many labels; there are 3
ContrastiveLoss |  | 4x3x1x1x1 4x3 4 | at most 4 axes
Convolution | num_output: 1 kernel_size: 1 | 1x1x2x2 -> 2 | as many tops as bottoms; it has 1 bottom and 2 tops
Convolution | num_output: 0 kernel_size: 1 | 2x3x8x9 | num_output must be positive; it is 0
Convolution | num_output: 2 kernel_size: 0 | 2x3x8x9 | kernel must be at least 1 .* it is 0
Convolution | num_output: 2 | 2x3x8x9 | kernel_size must be given once.*given 0 times
Convolution | num_output: 2 kernel_size: [1, 2, 3] | 2x3x8x9 | 2 spatial axes; it is given 3 times
Convolution | num_output: 2 kernel_size: 1 kernel_h: 1 | 2x3x8x9 | kernel_h and kernel_w: give one of them
Convolution | num_output: 2 kernel_h: 1 kernel_w: 1 | 1x2x3 | for 2 spatial axes; the input has 1
Convolution | num_output: 2 kernel_size: 1 stride_h: 1 | 2x3x8x9 | stride must be at least 1 .* it is 0
Convolution | num_output: 2 kernel_size: 1 dilation: 0 | 2x3x8x9 | dilation must be at least 1
Convolution | num_output: 2 kernel_size: 1 group: 0 | 2x3x8x9 | group must be positive
Convolution | num_output: 2 kernel_size: 1 group: 2 | 2x3x8x9 | 3 input channels do not divide into 2
Convolution | num_output: 2 kernel_size: 1 group: 3 | 2x3x8x9 | num_output 2 does not divide into 3
Convolution | num_output: 2 kernel_size: 12 | 2x3x8x9 | does not fit the input 2 x 3 x 8 x 9
Convolution | num_output: 2 kernel_size: 1 axis: 4 | 2x3x8x9 | axis 4 is out of range
Convolution | num_output: 2147483648 kernel_size: 1 | 2x3x8x9 | more than 2147483647 values
Convolution | num_output: 2 kernel_size: 1 pad: 4294967295 | 2x3x8x9 | below 2\^31
Convolution | num_output: 2 kernel_size: 1 pad: 2000000000 | 2x3x8x9 | more than 2147483647 values
Convolution | num_output: 2 kernel_size: 1 weight_filler { type: 'glorot' } | 2x3x8x9 | glorot
Crop | offset: [1, 2, 3] | 2x3x6x8 2x3x4x5 | once for each of the 2 axes
Crop | offset: 3 | 2x3x6x8 2x3x4x5 | axis 2 is out of bounds: offset 3 and size 4 in 6
Crop | offset: 4294967295 | 2x3x6x8 2x3x4x5 | out of bounds
Crop |  | 2x3x6x8 4x5 | fewer axes
Crop | axis: 4 | 2x3x6x8 2x3x4x5 | axis 4 is out of range
Crop |  | 2x3x6x8 | takes 2 bottoms; it has 1
Deconvolution | num_output: 1 kernel_size: 1 pad: 3 | 1x1x2x2 | does not fit
Deconvolution | num_output: 1 kernel_h: 2 kernel_w: 4 weight_filler { type: 'bilinear' } | 1x1x2x2 | bilinear
Deconvolution | num_output: 1 kernel_size: 1 stride: 2000000000 | 1x1x9x9 | more than 2147483647
DepthwiseConvolution | num_output: 6 kernel_size: 3 group: 4 | 1x6x5x5 | the 6 input channels do not divide into 4 groups
DetectionOutput | num_classes: 3 | 2x20 2x15 1x1x20 | priors are rows of corners and of variances
DetectionOutput | num_classes: 3 | 2x20 2x15 1x2x22 | priors are rows of corners and of variances
DetectionOutput | num_classes: 3 | 2x20 2x15 1x2x0 | priors are rows of corners and of variances
DetectionOutput | num_classes: 3 | 2x20 2x15 0x2x20 | priors are rows of corners and of variances
DetectionOutput |  | 2x20 2x15 1x2x20 | num_classes 0 must be positive
DetectionOutput | num_classes: 3 share_location: false | 2x20 2x15 1x2x20 | 5 priors need 60 locations for each image; there are 20
DetectionOutput | num_classes: 3 nms_param { eta: 2 } | 2x20 2x15 1x2x20 | eta 2 must be
Dropout | dropout_ratio: 1 | 3 | dropout_ratio 1 must be
Dropout | dropout_ratio: -0.5 | 3 | dropout_ratio -0.5 must be
DummyData |  |  -> 2 | 2 tops need one shape or 2; there are 0
DummyData | num: 1 |  -> 2 | channels once or 2 times; it is there 0
DummyData | num: 1 shape { dim: 1 } |  -> 2 | not both
DummyData | shape { dim: 1 } data_filler { type: 'consant' } |  -> 2 | did you mean 'constant'
DummyData | shape { dim: 1 } data_filler {} data_filler {} data_filler {} |  -> 2 | there are 3
Eltwise |  | 2x3 3x2 | bottom 0 is 2 x 3, bottom 1 is 3 x 2
Eltwise |  | 2x3 | takes at least 2 bottoms; it has 1
Eltwise | coeff: 1 | 2x3 2x3 | one coeff a bottom; it has 1 for 2
Eltwise | operation: PROD coeff: [1, 2] | 2 2 | coeff is for SUM
Embed | num_output: 3 | 2 | input_dim must be positive
Embed | input_dim: 3 | 2 | num_output must be positive
Embed | num_output: 3 input_dim: 7 | 1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1 | 33 axes; 32 is the most
EuclideanLoss |  | 4x3 4x2 | have the same number of values.*4 x 3 and 4 x 2
Exp | base: -2 | 3 | base -2 must be positive
Exp | base: 0 | 3 | base 0 must be positive
Exp | base: inf | 3 | base inf must be positive and finite
Exp | base: nan | 3 | base nan must be positive
Exp | shift: 1000 | 3 | too large
Filter |  | 4x3 4x2 | the selector holds one value for each item; its shape is 4 x 2
Filter |  | 4x3 () | its shape is scalar
Filter |  | 4x3 5 | the selector has 5 items; a bottom of shape 4 x 3
Filter |  | 4x3 4 -> 2 | 1 bottoms besides the selector need as many tops; there are 2
Flatten | axis: 3 end_axis: 1 | 2x3x8x9 | end_axis 1 lies before axis 3
Flatten |  | 4 | axis 1 is out of range
Flatten | end_axis: 4 | 2x3x8x9 | end_axis 4 is out of range
HDF5Output | file_name: 'f.h5' | 3x2 2 -> 0 | data has 3 items and label 2
HDF5Output |  | 3x2 3 -> 0 | file_name
HingeLoss |  | 4x3 2 | same first axis
HingeLoss |  | 4x3 4x3 | one value for each item; their shape is 4 x 3
Im2col | kernel_size: 1 | 4x5 | needs a spatial axis after axis 1
Im2col | kernel_size: 9 | 1x1x4x4 | does not fit
InfogainLoss |  | 4x3 4 | needs the matrix
InfogainLoss |  | 2x3x4 4x2 3x3 | the same first axis
InfogainLoss |  | 4x3 4 2x2 | 3 x 3 matrix; its shape is 2 x 2
InnerProduct |  | 2x3x8x9 | num_output must be positive; it is 0
InnerProduct | num_output: 1 axis: 4 | 2x3x8x9 | axis 4 is out of range for the shape 2 x 3 x 8 x 9
InnerProduct | num_output: 4294967295 | 2x3x8x9 | more than 2147483647 values
InnerProduct | num_output: 1 bias_filler { type: 'xavier' sparse: 2 } | 2x3x8x9 | sparse
Input | shape { dim: 2 } shape { dim: 0 dim: 5 } |  -> 3 | 3 tops need one shape, 3 shapes or none; there are 2
Interp |  | 2x3x8x9 | give height and width, a zoom_factor or a shrink_factor
Interp | height: 3 | 2x3x8x9 | give height and width
Interp | height: -3 width: 4 | 2x3x8x9 | height and width must be positive
Interp | zoom_factor: 0 | 2x3x8x9 | factors must be positive; zoom is 0
Interp | zoom_factor: 2 pad_beg: 1 | 2x3x8x9 | pad_beg can only crop
Interp | zoom_factor: 2 pad_beg: -8 | 2x3x8x9 | nothing of 2 x 3 x 8 x 9 is left
Interp | zoom_factor: 2 | 2x3x8x9 2x3x8x9 | the second bottom gives the size
Interp | zoom_factor: 2147483647 | 2x3x8x9 | more than 2147483647 values
Interp | zoom_factor: 2 | 1x1x1x1x1 | at most 4 axes
LRN | local_size: 4 | 2x3x8x9 | local_size must be odd .* it is 4
LRN | local_size: 4294967295 | 2x3x8x9 | below 2\^31
LRN |  | 2x3 | takes 4 axes
LSTM |  | 4x2x3x2 4x2 | num_output 0 must be positive
LSTM | num_output: 5 | 4 4x2 | time x streams
LSTM | num_output: 5 | 4x2x3 3x2 | must be time x streams, 4 x 2; they are 3 x 2
LSTM | num_output: 5 | 4x2x3 4x2x1 | they are 4 x 2 x 1
LSTM | num_output: 5 | 4x2x3x2 4x2 3x7 | static input must have 2 streams
LSTM | num_output: 5 | 4x2x3x2 4x2 2x0 | static input is empty
LSTM | num_output: 5 | 4x2x3x2 4x2 2x7 2x7 | takes 2 to 3 bottoms; it has 4
LSTM | num_output: 5 | 4x2x3x2 4x2 -> 2 | makes 1 tops; it has 2
LSTM | num_output: 5 expose_hidden: true | 4x2x3x2 4x2 -> 3 | takes 4 to 5 bottoms \(expose_hidden adds 2\); it has 2
LSTM | num_output: 5 expose_hidden: true | 4x2x3x2 4x2 1x2x5 1x2x5 | makes 3 tops
LSTM | num_output: 5 expose_hidden: true | 4x2x3x2 4x2 1x2x5 2x5 -> 3 | hidden state must be 1 x 2 x 5; it is 2 x 5
LSTM | num_output: 5 weight_filler { type: 'glorot' } bias_filler { value: 1 } | 4x2x3x2 4x2 | unknown filler 'glorot'
LSTMUnit |  | 3x4 1x3x16 1x3 -> 2 | the cell must be
LSTMUnit |  | 2x3x4 1x3x16 1x3 -> 2 | the cell must be
LSTMUnit |  | 1x3x4 1x3x12 1x3 -> 2 | gates must be 1 x 3 x 16; they are 1 x 3 x 12
LSTMUnit |  | 1x3x4 1x3x16 1x2 -> 2 | indicators must be 1 x 3; they are 1 x 2
Log | base: -3 | 3 | base -3 must be positive
Log | base: 1 | 3 | base 1 has no logarithm
MVN |  | 1x1x1x1x1 | at most 4 axes
MemoryData | batch_size: 2 channels: 3 width: 5 |  -> 2 | needs a positive height; it is 0
MultiBoxLoss | num_classes: 3 background_label_id: 3 | 2x20 2x15 1x2x20 1x1x6x8 | background_label_id 3 is out of range: there are 3 classes
MultiBoxLoss | num_classes: 3 mining_type: HARD_EXAMPLE sample_size: 0 | 2x20 2x15 1x2x20 1x1x6x8 | sample_size 0 must be positive
MultiBoxLoss | num_classes: 3 map_object_to_agnostic: true | 2x20 2x15 1x2x20 1x1x6x8 | needs 2 classes; there are 3
MultiBoxLoss | num_classes: 3 | 2x20 2x15 1x2x20 1x1x6x7 | a row of 8 values
MultiBoxLoss | num_classes: 4 | 2x20 2x15 1x2x20 1x1x6x8 | 5 priors need 20 confidences for each image
MultiBoxLoss | num_classes: 3 share_location: false | 2x20 2x15 1x2x20 1x1x6x8 | needs share_location
MultinomialLogisticLoss |  | 4x3 4x2 | one value for each item
Normalize |  | 3 | at least 2 axes
Normalize |  | 1x1x1x1x1 | at most 4 axes
PReLU |  | 3 | at least 2 axes; its shape is 3
PReLU | filler { type: 'x' } | 3 | at least 2 axes
PReLU | filler { type: 'x' } | 2x3 | unknown filler 'x'
Permute | order: [0, 0] | 2x3x8x9 | names an axis twice
Permute | order: 4294967295 | 2x3x8x9 | order 4294967295 is out of range
Pooling | pool: AVE kernel_size: 2 | 1x2x4x4 -> 2 | for MAX pooling; this is AVE
Pooling |  | 2x3x8x9 | kernel_size, or kernel_h and kernel_w, must be given
Pooling | kernel_h: 2 | 2x3x8x9 | not a mixture
Pooling | kernel_size: 2 kernel_h: 2 kernel_w: 2 | 2x3x8x9 | not a mixture
Pooling | kernel_size: 2 pad: 1 pad_h: 1 pad_w: 1 | 2x3x8x9 | give pad, or pad_h and pad_w
Pooling | kernel_size: 2 stride_w: 1 | 2x3x8x9 | give stride, or stride_h and stride_w
Pooling | kernel_size: 2 stride: 0 | 2x3x8x9 | stride must be at least 1
Pooling | kernel_size: 2 pad: 2 | 2x3x8x9 | pad 2 x 2 must be smaller than the kernel 2 x 2
Pooling | pool: STOCHASTIC kernel_size: 2 pad: 1 | 2x3x8x9 | STOCHASTIC pooling takes no padding
Pooling | global_pooling: true kernel_size: 2 | 2x3x8x9 | give no kernel size
Pooling | global_pooling: true stride: 2 | 2x3x8x9 | pad 0 and stride 1 only
Pooling | global_pooling: true | 1x2x0x3 | kernel must be at least 1
Pooling | kernel_size: 2 | 2x3x8 | takes 4 axes .*; the input is 2 x 3 x 8
Pooling | kernel_size: 12 | 2x3x8x9 | does not fit
Pooling | kernel_size: 4294967295 pad: 4294967294 | 2x3x8x9 | below 2\^31
PriorBox |  | 2x8x3x4 2x3x30x60 | needs min_size, all positive
PriorBox | min_size: 0 | 2x8x3x4 2x3x30x60 | needs min_size, all positive
PriorBox | min_size: 2 max_size: 2 | 2x8x3x4 2x3x30x60 | max_size 2 must be greater than min_size 2
PriorBox | min_size: 2 max_size: 3 max_size: 4 | 2x8x3x4 2x3x30x60 | there are 2 and 1
PriorBox | min_size: 2 aspect_ratio: 0 | 2x8x3x4 2x3x30x60 | aspect_ratio 0 must be positive
PriorBox | min_size: 2 variance: 1 variance: 1 | 2x8x3x4 2x3x30x60 | one variance or four
PriorBox | min_size: 2 img_size: 2 img_h: 3 | 2x8x3x4 2x3x30x60 | either img_size or img_h and img_w
PriorBox | min_size: 2 img_h: 3 | 2x8x3x4 2x3x30x60 | img_h and img_w must be positive; they are 3 and 0
PriorBox | min_size: 2 step: 0 | 2x8x3x4 2x3x30x60 | step_h and step_w must be positive
ROIPooling | pooled_h: 6 | 2x3x9x9 10x5 | pooled_h and pooled_w must be positive
ROIPooling | pooled_h: 6 pooled_w: 6 | 2x3x9x9 10x4 | a region has 5 values
ROIPooling | pooled_h: 4294967295 pooled_w: 6 | 2x3x9x9 10x5 | more than 2147483647
Reduction | axis: 2 | 2x4 | axis 2 is out of range
Reshape | shape { dim: -1 dim: -1 } | 2x3 | at most one size may be -1
Reshape | shape { dim: -2 dim: -3 } | 2x3 | positive, 0 or -1
Reshape | shape { dim: 5 } | 2x3 | 2 x 3 has 6 values, 5 has 5
Reshape | shape { dim: 4 dim: -1 } | 2x3 | do not divide by 4
Reshape | shape { dim: 0 dim: -1 } | 0x3 | do not divide by 0
Reshape | shape { dim: 6 dim: 1 dim: 0 } | 2x3 | copies axis 2, which 2 x 3 does not have
Reshape | axis: 3 | 2x3 | axis 3 is out of range
Reshape | axis: -4 | 2x3 | axis -4 is out of range
Reshape | num_axes: -2 | 2x3 | num_axes must be at least 0
Reshape | axis: 1 num_axes: 2 | 2x3 | 2 axes from axis 1 on reach past
Reshape | shape { dim: 9223372036854775807 dim: 9223372036854775807 } | 2x3 | has 6 values
SPP | pyramid_height: 0 | 2x3x8x9 | pyramid_height must be positive
SPP | pyramid_height: 4294967295 | 2x3x8x9 | must be smaller than the kernel
SPP | pyramid_height: 2 | 1x1x0x4 | must not be empty
SPP | pyramid_height: 1 | 1x4 | takes 4 axes
Scale | num_axes: -2 | 2x3 | num_axes must be at least 0, or -1
Scale | num_axes: 2 | 2x3 | 2 scale axes from axis 1 on reach past the input 2 x 3
Scale | axis: 2 | 2x3 | axis 2 is out of range
Scale |  | 2x3 4 | the scale blob 4 does not match the input 2 x 3 from axis 1 on
Scale |  | 2x3 3x1 | reach past the input
Scale |  | 2x3 3 3 | takes 1 to 2 bottoms; it has 3
ShuffleChannel | group: 4 | 2x6x4x4 | 6 channels do not divide into 4 groups
ShuffleChannel | group: 0 | 2x6x4x4 | group must be positive
ShuffleChannel |  | 6 | needs a channel axis
SigmoidCrossEntropyLoss |  | 4x3 4x2 | have the same number of values
Silence |  | 2 | takes 0 tops; it has 1
Slice |  | 2x6 -> 4 | 4 tops do not divide the axis of size 6
Slice | slice_point: 1 | 2x6 -> 3 | 3 tops need 2 slice points; 1 are given
Slice | slice_point: [3, 2] | 2x6 -> 3 | must rise
Slice | slice_point: 0 | 2x6 -> 2 | must rise
Slice | slice_point: 7 | 2x6 -> 2 | at most 6
Slice | slice_point: 4294967295 | 2x6 -> 2 | at most 6
Slice | axis: 1 slice_dim: 1 | 2x6 -> 2 | give axis or slice_dim
SmoothL1Loss |  | 4x3 4x3 4x2 | bottom 2 is 4 x 2
Softmax |  | 3 | axis 1 is out of range for the shape 3
SoftmaxWithLoss |  | 2x3x4 2x3 | needs 8 labels; there are 6, of shape 2 x 3
SoftmaxWithLoss |  | 2x3 3 | same first axis; their shapes are 2 x 3 and 3
SoftmaxWithLoss |  | 2 2 | axis 1 is out of range
SoftmaxWithLoss |  | () () | at least 1 axis
Split |  | 2x3 -> 0 | takes at least 1 top; it has 0
Tile |  | 2x4 | number of tiles must be given
Tile | tiles: 0 | 2x4 | tiles must be positive; it is 0
Tile | tiles: 2147483647 | 2x4 | more than 2147483647 values
Tile | tiles: 1 axis: 2 | 2x4 | axis 2 is out of range
Upsample |  | 1x2x3x5 1x2x3x4 | the mask 1 x 2 x 3 x 4 must have the input's shape
Upsample | scale: 1 | 1x2x3x5 1x2x3x5 | scale must be above 1
Upsample | scale: 2 scale_h: 2 scale_w: 2 | 1x2x3x5 1x2x3x5 | or scale, or scale_h and scale_w
Upsample | scale: 3 pad_out_w: true | 1x2x3x5 1x2x3x5 | go with a scale of 2
Upsample | upsample_h: 1 upsample_w: 9 | 1x2x3x5 1x2x3x5 | must be above 1
Upsample | scale: 0 | 1x2x3x5 | scale must be positive
Upsample | scale: 4294967295 | 1x2x3x5 | more than 2147483647 values
Upsample |  | 1x2x3 | takes 4 axes
"""  # noqa: E501
"""Type, options, bottoms (-> how many tops, if not one), and words of the message."""


def rows(table: str, columns: int) -> list[list[str]]:
    cells = [[cell.strip() for cell in row.split(" | ")] for row in table.strip().splitlines()]
    return [[*row, *[""] * (columns - len(row))] for row in cells]


def shapes(text: str) -> list[Shape]:
    return [() if one == "()" else tuple(map(int, one.split("x"))) for one in text.split()]


def options_of(kind: str, text: str) -> str:
    return f"{LAYERS[kind].field} {{ {text} }}" if text else ""


@pytest.mark.parametrize(("kind", "options", "blobs", "params", "values"), rows(ACCEPTED, 5))
def test_accepted(kind, options, blobs, params, values):
    bottoms, tops = map(shapes, blobs.split("->"))
    layer = plan(kind, options_of(kind, options), *bottoms, tops=len(tops))
    assert list(layer.tops) == tops
    assert shapes_of_params(layer) == shapes(params)
    assert eval(f"dict({values})").items() <= layer.values.items()


@pytest.mark.parametrize(("kind", "options", "blobs", "message"), rows(REFUSED, 4))
def test_refused(kind, options, blobs, message):
    bottoms, _, tops = blobs.partition("->")
    with pytest.raises(LayerError, match=message) as caught:
        plan(kind, options_of(kind, options), *shapes(bottoms), tops=int(tops or 1))
    assert caught.value.layer == "l"
