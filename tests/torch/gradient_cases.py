"""Layers of every type that PyTorch computes, of the sizes that layers of published nets have."""

import math
from collections.abc import Callable, Sequence

import numpy as np

import sparknet.caffe as caffe
from tests.fuzz.kernels.sizes import channels, groups, reach, window, words
from tests.torch.gradient_draw import VALUES, Case, Draw, Shape

PRODUCTS = 4e6
"""What a case may have: a hundredth of a second of a pass in float64."""
Maker = Callable[[Draw], Case]
CASES: dict[str, Maker] = {}


def of(*types: str) -> Callable[[Maker], Maker]:
    def register(maker: Maker) -> Maker:
        CASES.update(dict.fromkeys(types, maker))
        return maker

    return register


def each(options: str, low: float = -3.0, high: float = 3.0) -> Maker:
    """A function of one number; ``options`` names what may be drawn as a|b|c."""

    def maker(draw: Draw) -> Case:
        words = [draw.one(*word.split("|")) for word in options.split()]
        return Case(" ".join(words), (draw.between(low, high, draw.blob()),))

    return maker


CASES |= {
    "ReLU": each("relu_param { negative_slope: 0|0|0.1|-0.5 }"),
    "ReLU6": each("", -3, 9),
    "PReLU": each("prelu_param { channel_shared: true|false }"),
    "ELU": each("elu_param { alpha: 1|0.5 }"),
    "Sigmoid": each(""),
    "TanH": each(""),
    "AbsVal": each(""),
    "BNLL": each(""),
    "Power": each("power_param { power: 1|2|3|0.5|-1|-0.75 scale: 0.5 shift: 1|2 }", -1, 3),
    "Exp": each("exp_param { base: -1|2|10 scale: 0.5 shift: 0|1 }"),
    "Log": each("log_param { base: -1|2|10 scale: 0.5 shift: 2 }"),
    "Clip": each("clip_param { min: -1 max: 1|2 }"),
    "Swish": each("swish_param { beta: 1|0.5 }"),
    "HardSwish": each("", -5, 5),
    "GELU": each("gelu_param { approximate: NONE|TANH }"),
    "Mish": each("", -5, 5),
    "Math": each("math_param { function: SIN|COS }", -5, 5),
    "LogSoftmax": each("softmax_param { axis: 1|-1 }"),
    "Softmax": each("softmax_param { axis: 1|-1 }"),
    "Flatten": each(""),
    "Silence": lambda draw: Case("", (draw.normal(draw.blob()),), tops=0),
    "EuclideanLoss": lambda draw: Case("", (draw.normal((64, 10)), draw.normal((64, 10)))),
    "Split": lambda draw: Case("", (draw.normal(draw.blob()),), tops=draw.some(1, 4)),
    "Reshape": lambda draw: Case(
        "reshape_param { shape { dim: 0 dim: -1 dim: 1 } }", (draw.normal(draw.blob()),)
    ),
}


@of("Dropout")
def dropout(draw: Draw) -> Case:
    options = f"dropout_param {{ dropout_ratio: {draw.one(0.1, 0.5, 0.9)} }}"
    phase = draw.one(caffe.TRAIN, caffe.TRAIN, caffe.TEST)
    return Case(options, (draw.normal(draw.blob()),), phase=phase)


@of("SpatialDropout")
def spatial_dropout(draw: Draw) -> Case:
    options = f"dropout_param {{ dropout_ratio: {draw.one(0.1, 0.5, 0.9)} }}"
    return Case(options, (draw.normal(draw.picture()),), phase=draw.one(caffe.TRAIN, caffe.TEST))


# -- convolutions ------------------------------------------------------------------------


@of("Convolution")
def convolution(draw: Draw) -> Case:
    while True:
        shape = draw.picture()
        kernel, stride, pad, dilation = window(draw.sizes, 11)
        far = reach(kernel, dilation)
        room = [n + 2 * p - r for n, p, r in zip(shape[2:], pad, far, strict=True)]
        group, outputs = groups(draw.sizes, shape[1], channels(draw.sizes))
        made = [max(0, n) // s + 1 for n, s in zip(room, stride, strict=True)]
        weights = outputs * shape[1] // group * math.prod(kernel)
        if min(room) >= 0 and shape[0] * weights * math.prod(made) < PRODUCTS:
            break
    sizes = words(kernel=kernel, stride=stride, pad=pad)
    options = f"num_output: {outputs} group: {group} {sizes} "
    options += f"dilation: {dilation[0]} dilation: {dilation[1]} bias_term: {draw.yes()}"
    tops = draw.one(1, 1, 2)
    inputs = tuple(draw.normal(shape) for _ in range(tops))
    return Case(f"convolution_param {{ {options} }}", inputs, tops)


def _same(draw: Draw, more: str) -> str:
    """One kernel for all axes."""
    kernel = draw.one(1, 2, 3, 3)
    pad, stride = draw.one(0, kernel // 2), draw.one(1, 2)
    return f"kernel_size: {kernel} pad: {pad} stride: {stride} bias_term: {draw.yes()} {more}"


@of("Convolution3D", "Deconvolution3D")
def convolution_of_clips(draw: Draw) -> Case:
    shape = (draw.some(1, 3), draw.one(1, 3, 8, 16), draw.some(3, 8), *[draw.some(4, 14)] * 2)
    more = f"num_output: {draw.one(1, 4, 8)} kernel_depth: {draw.one(1, 2, 3)}"
    return Case(f"convolution3d_param {{ {_same(draw, more)} }}", (draw.normal(shape),))


@of("ConvolutionDepthwise", "DepthwiseConvolution")
def depthwise(draw: Draw) -> Case:
    shape = draw.picture(wide=3)
    options = _same(draw, f"num_output: {shape[1]}")
    return Case(f"convolution_param {{ {options} }}", (draw.normal(shape),))


@of("Deconvolution")
def deconvolution(draw: Draw) -> Case:
    axes, group = draw.one(1, 2, 2, 2, 3), draw.one(1, 1, 2)
    shape = (draw.some(1, 4), draw.one(2, 8, 16, 32), *(draw.some(2, 12) for _ in range(axes)))
    stride = draw.one(1, 2, 2, 4)
    kernel, pad = (3, 1) if stride == 1 else (2 * stride, stride // 2)
    options = f"num_output: {draw.one(2, 4, 16)} kernel_size: {kernel} stride: {stride} pad: {pad}"
    options += f" group: {group} bias_term: {draw.yes()}"
    return Case(f"convolution_param {{ {options} }}", (draw.normal(shape),))


@of("Im2col")
def im2col(draw: Draw) -> Case:
    shape = draw.picture(most=VALUES / 9, wide=3)
    return Case(f"convolution_param {{ {_same(draw, '')} }}", (draw.normal(shape),))


# -- pooling and normalisation -----------------------------------------------------------


@of("Pooling")
def pooling(draw: Draw) -> Case:
    method, shape = draw.one("MAX", "AVE", "STOCHASTIC"), draw.picture(wide=4)
    if draw.one(*range(5)) == 0 and method != "STOCHASTIC":
        options = "global_pooling: true"
    else:
        kernel = draw.one(2, 3, 3, 4)
        pad = 0 if method == "STOCHASTIC" else draw.one(0, kernel // 2)
        options = f"kernel_size: {kernel} stride: {draw.one(1, 2, 2, 3, 5)} pad: {pad}"
    tops = draw.one(1, 2) if method == "MAX" else 1
    phase = draw.one(caffe.TRAIN, caffe.TEST)
    values = draw.normal(shape) if method != "STOCHASTIC" else draw.between(0.1, 2, shape)
    return Case(f"pooling_param {{ pool: {method} {options} }}", (values,), tops, phase=phase)


@of("SPP")
def spp(draw: Draw) -> Case:
    options = f"pool: {draw.one('MAX', 'AVE')} pyramid_height: {draw.some(1, 3)}"
    return Case(f"spp_param {{ {options} }}", (draw.normal(draw.picture(wide=8)),))


@of("BatchNorm")
def batch_norm(draw: Draw) -> Case:
    options = draw.one("", "use_global_stats: true", "use_global_stats: false eps: 0.001")
    shape = draw.picture(8)
    return Case(f"batch_norm_param {{ {options} }}", (draw.normal(shape, 2),))


@of("LRN")
def lrn(draw: Draw) -> Case:
    region = draw.one("ACROSS_CHANNELS", "WITHIN_CHANNEL")
    options = f"norm_region: {region} local_size: {draw.one(3, 5)} alpha: {draw.one(1e-4, 0.5, 1)}"
    options += f" beta: {draw.one(0.75, 0.5)} k: {draw.one(1, 2)}"
    return Case(f"lrn_param {{ {options} }}", (draw.normal(draw.picture(wide=3)),))


@of("MVN")
def mvn(draw: Draw) -> Case:
    options = (
        f"across_channels: {draw.yes()} normalize_variance: {draw.one('true', 'true', 'false')}"
    )
    return Case(f"mvn_param {{ {options} }}", (draw.normal(draw.picture(wide=4)),))


@of("LayerNorm")
def layer_norm(draw: Draw) -> Case:
    options = f"axis: {draw.one(1, -1)} eps: {draw.one(1e-5, 1e-3)}"
    return Case(f"layer_norm_param {{ {options} }}", (draw.normal(draw.picture(wide=4), 2) + 1,))


@of("Normalize")
def normalize(draw: Draw) -> Case:
    options = f"across_spatial: {draw.yes()} channel_shared: {draw.yes()}"
    options += f" learned_scale: {draw.yes()}"
    shape = draw.picture(wide=4)
    shape = (shape[0], max(shape[1], 3), *shape[2:])  # of one channel there is no gradient
    return Case(f"norm_param {{ {options} }}", (draw.between(0.3, 2, shape),))


# -- losses ------------------------------------------------------------------------------


def _classes(draw: Draw) -> tuple[Shape, Shape]:
    """Scores of classes, of records or of pixels, and the shape of their labels."""
    if draw.one(True, False):
        shape: Shape = (draw.some(1, 30), draw.one(2, 10, 100, 1000))
        return shape, shape[:1]
    shape = (draw.some(1, 4), draw.one(2, 3, 21), draw.some(3, 20), draw.some(3, 20))
    return shape, (shape[0], 1, *shape[2:])


def _divided(draw: Draw) -> str:
    modes = ("FULL", "VALID", "BATCH_SIZE", "NONE")
    ignored = draw.one("", "ignore_label: 1 ")
    return f"loss_param {{ {ignored}normalization: {draw.one(*modes)} }}"


@of("SoftmaxWithLoss")
def softmax_with_loss(draw: Draw) -> Case:
    shape, labels = _classes(draw)
    inputs = (draw.normal(shape, 2), draw.numbers(shape[1], labels))
    return Case(_divided(draw), inputs, draw.one(1, 2))


@of("InfogainLoss")
def infogain_loss(draw: Draw) -> Case:
    shape, labels = _classes(draw)
    shape = (shape[0], min(shape[1], 100), *shape[2:])
    matrix = draw.between(0, 1, (1, 1, shape[1], shape[1]))
    inputs = (draw.normal(shape), draw.numbers(shape[1], labels), matrix)
    return Case(_divided(draw), inputs, draw.one(1, 2))


@of("SigmoidCrossEntropyLoss")
def sigmoid_cross_entropy_loss(draw: Draw) -> Case:
    shape = draw.blob()
    targets = draw.numbers(2, shape) if draw.one(True, False) else draw.between(0, 0.9, shape)
    return Case(_divided(draw), (draw.normal(shape, 2), targets))


@of("HingeLoss")
def hinge_loss(draw: Draw) -> Case:
    shape = draw.rows()
    options = f"hinge_loss_param {{ norm: {draw.one('L1', 'L2')} }}"
    return Case(options, (draw.normal(shape), draw.numbers(shape[1], shape[:1])))


@of("MultinomialLogisticLoss")
def multinomial_logistic_loss(draw: Draw) -> Case:
    shape = draw.rows()
    return Case("", (draw.between(0.1, 1, shape), draw.numbers(shape[1], shape[:1])))


@of("ContrastiveLoss")
def contrastive_loss(draw: Draw) -> Case:
    """Of unlike pairs Caffe adds 1e-4 to the distance that it divides by."""
    shape, legacy = draw.rows(), draw.yes()
    options = f"contrastive_loss_param {{ margin: {draw.one(1, 20)} legacy_version: {legacy} }}"
    inputs = (draw.normal(shape), draw.normal(shape), draw.numbers(2, shape[:1]))
    return Case(options, inputs, fixed=frozenset({2}), tolerance=1e-3)


# -- products and sequences --------------------------------------------------------------


@of("InnerProduct")
def inner_product(draw: Draw) -> Case:
    shape = draw.picture(most=2000) if draw.one(True, False) else draw.rows()
    axis = draw.one(1, 1, len(shape) - 1)
    options = f"num_output: {draw.one(1, 2, 10, 100, 500)} axis: {axis} transpose: {draw.yes()}"
    options = f"inner_product_param {{ {options} bias_term: {draw.yes()} }}"
    return Case(options, (draw.normal(shape),))


@of("MatMul")
def matmul(draw: Draw) -> Case:
    rows, inner, columns = draw.some(1, 130), draw.one(1, 8, 64, 100), draw.some(1, 130)
    heads, turned = draw.some(1, 4), [draw.yes(), draw.yes()]
    left = (inner, rows) if turned[0] == "true" else (rows, inner)
    right = (columns, inner) if turned[1] == "true" else (inner, columns)
    options = f"transpose_a: {turned[0]} transpose_b: {turned[1]}"
    outer: list[Shape] = [(draw.one(1, heads), 2), (heads, draw.one(1, 2))]
    inputs = draw.normal((*outer[0], *left)), draw.normal((*outer[1], *right))
    return Case(f"matmul_param {{ {options} }}", inputs)


@of("Embed")
def embed(draw: Draw) -> Case:
    words, shape = draw.one(2, 50, 1000), (draw.some(2, 30), draw.some(1, 20))
    options = f"num_output: {draw.one(4, 16, 64)} input_dim: {words} bias_term: {draw.yes()}"
    return Case(f"embed_param {{ {options} }}", (draw.numbers(words, shape),))


@of("LSTM", "RNN")
def recurrent(draw: Draw) -> Case:
    steps, streams, width = draw.some(1, 20), draw.some(1, 16), draw.one(1, 8, 32, 64)
    marks = (draw.values.random((steps, streams)) < 0.8).astype(np.float32)
    inputs = [draw.normal((steps, streams, draw.one(1, 8, 50))), marks]
    if draw.one(True, False):
        inputs.append(draw.normal((streams, draw.some(1, 30))))
    filler = 'weight_filler { type: "xavier" }'
    return Case(f"recurrent_param {{ num_output: {width} {filler} }}", tuple(inputs))


@of("GRU")
def gru(draw: Draw) -> Case:
    steps, streams, width = draw.some(1, 20), draw.some(1, 16), draw.one(1, 8, 32, 64)
    marks = (draw.values.random((steps, streams)) < 0.8).astype(np.float32)
    options = f'num_output: {width} reset_after: {draw.yes()} weight_filler {{ type: "xavier" }}'
    inputs = draw.normal((steps, streams, draw.one(1, 8, 50))), marks
    return Case(f"recurrent_param {{ {options} }}", inputs)


@of("LSTMUnit")
def lstm_unit(draw: Draw) -> Case:
    streams, width = draw.some(1, 64), draw.one(1, 8, 100, 256)
    marks = (draw.values.random((1, streams)) < 0.8).astype(np.float32)
    cell, gates = draw.normal((1, streams, width)), draw.normal((1, streams, 4 * width))
    return Case("", (cell, gates, marks), tops=2)


# -- places ------------------------------------------------------------------------------


@of("Concat")
def concat(draw: Draw) -> Case:
    shape, axis = draw.picture(), draw.one(0, 1, 1, 2)
    count = draw.some(1, 4)
    shapes = [(*shape[:axis], draw.some(1, 16), *shape[axis + 1 :]) for _ in range(count)]
    return Case(f"concat_param {{ axis: {axis} }}", tuple(draw.normal(one) for one in shapes))


@of("Slice")
def slices(draw: Draw) -> Case:
    parts, axis = draw.some(1, 4), draw.one(1, 1, 2)
    shape = draw.picture(wide=5)
    shape = (shape[0], max(shape[1], 5), *shape[2:])
    points = " ".join(f"slice_point: {one}" for one in draw.split(shape[axis], parts))
    return Case(f"slice_param {{ axis: {axis} {points} }}", (draw.normal(shape),), parts)


@of("Crop")
def crop(draw: Draw) -> Case:
    shape = draw.picture(wide=4)
    small = (*shape[:2], *(draw.some(1, size - 2) for size in shape[2:]))
    options = f"crop_param {{ axis: 2 offset: {draw.one(0, 1, 2)} }}"
    return Case(options, (draw.normal(shape), draw.normal(small)))


@of("Tile")
def tile(draw: Draw) -> Case:
    options = f"tile_param {{ axis: {draw.one(0, 1, -1)} tiles: {draw.some(1, 5)} }}"
    return Case(options, (draw.normal(draw.blob()),))


@of("Permute")
def permute(draw: Draw) -> Case:
    order = draw.sizes.sample(range(4), 4)
    options = " ".join(f"order: {axis}" for axis in order)
    return Case(f"permute_param {{ {options} }}", (draw.normal(draw.picture()),))


@of("Transpose")
def transpose(draw: Draw) -> Case:
    order = " ".join(f"dim: {axis}" for axis in draw.sizes.sample(range(4), 4))
    return Case(f"transpose_param {{ {order} }}", (draw.normal(draw.picture()),))


@of("Parameter")
def parameter(draw: Draw) -> Case:
    dims = " ".join(f"dim: {size}" for size in draw.blob())
    return Case(f"parameter_param {{ shape {{ {dims} }} }}", ())


@of("BatchReindex")
def batch_reindex(draw: Draw) -> Case:
    shape = draw.blob()
    return Case("", (draw.normal(shape), draw.numbers(shape[0], (draw.some(1, 40),))))


@of("Gather")
def gather(draw: Draw) -> Case:
    shape, axis = draw.picture(), draw.one(0, 1, 2, 3)
    first, many = draw.sizes.randrange(shape[axis]), draw.some(1, 40)
    anywhere = [draw.sizes.randrange(-shape[axis], shape[axis]) for _ in range(many)]
    places = draw.one(anywhere, list(range(first, shape[axis])))
    index = " ".join(f"index: {place}" for place in places)
    return Case(f"gather_param {{ axis: {axis} {index} }}", (draw.normal(shape),))


@of("BatchGather")
def batch_gather(draw: Draw) -> Case:
    shape, axis = draw.picture(), draw.one(0, 1, 2)
    places = draw.numbers(2 * shape[axis], (*shape[:axis], draw.some(1, 20))) - shape[axis]
    options = f"batch_gather_param {{ axis: {axis} }}"
    return Case(options, (draw.normal(shape), places))


@of("Reverse")
def reverse(draw: Draw) -> Case:
    return Case(f"reverse_param {{ axis: {draw.one(0, 1, -1)} }}", (draw.normal(draw.blob()),))


@of("Flip")
def flip(draw: Draw) -> Case:
    options = f"flip_width: {draw.yes()} flip_height: {draw.yes()}"
    return Case(f"flip_param {{ {options} }}", (draw.normal(draw.picture()),))


@of("SizedLike")
def sized_like(draw: Draw) -> Case:
    shape = draw.picture(wide=3)
    like = draw.normal((draw.some(2, 5), draw.some(1, shape[2])))
    one, cut = (shape[0], 1, *shape[2:]), "size { bottom: 1 axis: 1 }"
    size = "size { dim: %d } size { bottom: 1 axis: 0 } %s size { dim: %d }"
    options = size % (one[0], cut, one[3])
    if draw.one(True, False):
        options = f"reshape: true size {{ dim: -1 }} size {{ dim: {shape[3]} }}"
        one = shape
    return Case(f"sized_like_param {{ {options} }}", (draw.normal(one), like), fixed=frozenset({1}))


# -- images of another size --------------------------------------------------------------


@of("Resize")
def resize(draw: Draw) -> Case:
    modes = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
    options = f"mode: {draw.one('NEAREST', 'LINEAR', 'CUBIC')} "
    options += f"coordinates: {draw.one(*modes, 'half_pixel_symmetric').upper()} "
    if draw.one(True, False):
        options += f"height: {draw.some(1, 40)} width: {draw.some(1, 40)} "
    else:
        options += f"scale_h: {draw.one(0.5, 1.5, 2)} scale_w: {draw.one(0.4, 2, 3)} "
    rounding = ("FLOOR", "CEIL", "ROUND_PREFER_CEIL", "ROUND_PREFER_FLOOR")
    options += f"nearest_mode: {draw.one(*rounding)} exclude_outside: {draw.yes()}"
    shape = draw.picture(most=VALUES / 8, wide=3)
    return Case(f"resize_image_param {{ {options} }}", (draw.normal(shape),))


@of("Interp")
def interp(draw: Draw) -> Case:
    shape = draw.picture(most=VALUES / 8, wide=4)
    sizes = f"height: {draw.some(1, 30)} width: {draw.some(1, 30)}"
    size = draw.one(sizes, f"zoom_factor: {draw.one(2, 3)}", f"shrink_factor: {draw.one(1, 2)}")
    return Case(f"interp_param {{ {size} pad_beg: {draw.one(0, 0, -1)} }}", (draw.normal(shape),))


@of("Upsample")
def upsample(draw: Draw) -> Case:
    shape = draw.picture(most=VALUES / 16, wide=3)
    x = draw.normal(shape)
    if draw.one(True, False):
        return Case(f"upsample_param {{ scale: {draw.some(1, 4)} }}", (x,))
    area = shape[2] * shape[3]
    rows = np.arange(area).reshape(shape[2:])  # each window's place is one of its own
    mask = rows // shape[3] * 4 * shape[3] + rows % shape[3] * 2 + draw.one(0, 1)
    mask = np.broadcast_to(mask.astype(np.float32), shape)
    return Case("upsample_param { scale: 2 }", (x, mask), fixed=frozenset({1}))


@of("GridSample")
def grid_sample(draw: Draw) -> Case:
    shape = draw.picture(wide=3)
    grid = draw.between(-1.2, 1.2, (shape[0], draw.some(1, 20), draw.some(1, 20), 2))
    options = f"padding_mode: {draw.one('ZEROS', 'BORDER', 'REFLECTION')}"
    options += f" align_corners: {draw.yes()} mode: {draw.one('BILINEAR', 'BICUBIC')}"
    fixed = frozenset({1})  # its gradient has steps
    return Case(f"grid_sample_param {{ {options} }}", (draw.normal(shape), grid), fixed=fixed)


@of("Filter")
def filtered(draw: Draw) -> Case:
    one, other = draw.blob(), draw.some(1, 30)
    marks = draw.numbers(2, one[:1])
    marks[0] = 1
    return Case("", (draw.normal(one), draw.normal((one[0], other)), marks), tops=2)


@of("ShuffleChannel")
def shuffle_channel(draw: Draw) -> Case:
    group = draw.one(1, 2, 3, 4, 8)
    shape = draw.picture(most=VALUES / 8)
    shape = (shape[0], group * shape[1], *shape[2:])
    return Case(f"shuffle_channel_param {{ group: {group} }}", (draw.normal(shape),))


# -- sums --------------------------------------------------------------------------------


@of("Eltwise")
def eltwise(draw: Draw) -> Case:
    shape, operation, count = draw.blob(), draw.one("SUM", "MAX", "PROD"), draw.some(2, 4)
    options = f"operation: {operation} "
    if operation == "SUM" and draw.one(True, False):
        options += " ".join(f"coeff: {draw.one(1, -1, 0.5)}" for _ in range(count))
    if operation == "PROD":
        options += f"stable_prod_grad: {draw.yes()}"
    low = 0.2 if operation == "PROD" else -2.0
    inputs = tuple(draw.between(low, 2, shape) for _ in range(count))
    return Case(f"eltwise_param {{ {options} }}", inputs)


@of("Reduction")
def reduction(draw: Draw) -> Case:
    operation = draw.one("SUM", "ASUM", "SUMSQ", "MEAN")
    options = f"operation: {operation} axis: {draw.one(0, 1, -1)} coeff: {draw.one(1, 0.5)}"
    return Case(f"reduction_param {{ {options} }}", (draw.normal(draw.blob()),))


def _beside(draw: Draw, name: str, more: str) -> Case:
    """A small operand beside a large one, which is learned or given."""
    shape = draw.picture()
    axis = draw.one(0, 1, 1, 2)
    axes = draw.some(1, 4 - axis)
    x = draw.normal(shape)
    if draw.one(True, False):
        return Case(f"{name} {{ axis: {axis} num_axes: {axes} {more} }}", (x,))
    return Case(f"{name} {{ axis: {axis} {more} }}", (x, draw.normal(shape[axis : axis + axes])))


@of("Scale")
def scale(draw: Draw) -> Case:
    return _beside(draw, "scale_param", f"bias_term: {draw.yes()}")


@of("Bias")
def bias(draw: Draw) -> Case:
    return _beside(draw, "bias_param", "")


@of("Div")
def div(draw: Draw) -> Case:
    shape = draw.picture()
    other = draw.one(shape, (shape[1], 1, 1), (shape[0], 1, 1, shape[3]), (1,))
    return Case("", (draw.normal(shape), draw.between(0.5, 2, other)))


@of("Where")
def where(draw: Draw) -> Case:
    shape = draw.picture()
    sizes = [shape, draw.one(shape, (1, *shape[1:])), draw.one(shape, shape[2:], (1,))]
    marks, one, other = draw.sizes.sample(sizes, 3)
    return Case("", (draw.numbers(2, marks), draw.normal(one), draw.normal(other)))


@of("CumSum")
def cum_sum(draw: Draw) -> Case:
    options = f"axis: {draw.one(0, 1, -1)} exclusive: {draw.yes()} reverse: {draw.yes()}"
    return Case(f"cum_sum_param {{ {options} }}", (draw.normal(draw.picture()),))


@of("Axpy")
def axpy(draw: Draw) -> Case:
    shape = draw.picture()
    factors: Sequence[int] = draw.one(shape[:2], (*shape[:2], 1, 1))
    return Case("", (draw.normal(tuple(factors)), draw.normal(shape), draw.normal(shape)))
