"""SparkNet's own names for the layers of its Listing 2 (Moritz et al., ICLR 2016).

Each is a thin wrapper around a Caffe type; the type's other options are passed
as keywords.  `bottoms` are the blobs that a layer reads: a name or the
layer that makes it, or a list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparknet.dsl.builders import build
from sparknet.dsl.fields import short_repr
from sparknet.dsl.layer_spec import LayerSpec
from sparknet.errors import LayerError
from sparknet.proto.suggest import did_you_mean

ACTIVATIONS = {
    "relu": "ReLU",
    "sigmoid": "Sigmoid",
    "tanh": "TanH",
    "elu": "ELU",
    "prelu": "PReLU",
    "bnll": "BNLL",
    "abs": "AbsVal",
    "swish": "Swish",
    "clip": "Clip",
    "relu6": "ReLU6",
}
FILLER = "xavier"
Max, Ave = "max", "ave"
"""What `PoolLayer` computes, as Listing 2 spells it."""
POOLS = {"max": "MAX", "ave": "AVE", "avg": "AVE", "average": "AVE", "stochastic": "STOCHASTIC"}


def RDDLayer(name: str, shape: object, **options: object) -> LayerSpec:  # noqa: N802
    """Data that comes from a Spark column: an Input layer of this `shape`, batch first.

    `options` are those of every layer, such as ``include="TRAIN"``.

    >>> RDDLayer("data", shape=[64, 1, 28, 28]).type
    'Input'
    """
    return build("Input", name, shape=shape, **options)  # type: ignore[arg-type]


def ConvLayer(  # noqa: N802
    name: str,
    bottoms: object,
    *,
    kernel: object,
    num_filters: object,
    stride: object = None,
    pad: object = None,
    **options: object,
) -> LayerSpec:
    """Return a Convolution of the blobs `bottoms` (names or layers) with `num_filters` filters.

    `kernel`, `stride` and `pad` are one number or one per axis; `options` are Convolution's.
    Weights start as "xavier" unless `weight_filler` says otherwise.

    >>> ConvLayer("conv1", ["data"], kernel=(5, 3), num_filters=20, weight_filler="msra").type
    'Convolution'
    """
    windows = {"kernel_size": kernel, "stride": stride, "pad": pad}
    for word, value in windows.items():
        options.update(_window(word, value))
    options = _filled(options, "convolution_param")
    return build("Convolution", name, bottoms, num_output=num_filters, **options)  # type: ignore[arg-type]


def PoolLayer(  # noqa: N802
    name: str,
    bottoms: object,
    *,
    kernel: object = None,
    pool: object = "max",
    stride: object = None,
    pad: object = None,
    **options: object,
) -> LayerSpec:
    """Return a Pooling of the blobs `bottoms` (names or layers): `pool` is max, ave or stochastic.

    `kernel`, `stride` and `pad` are one number or (height, width); `options` are Pooling's.

    >>> PoolLayer("pool1", ["conv1"], pool="ave", kernel=2, stride=2).type
    'Pooling'
    """
    windows = {"kernel_size": kernel, "stride": stride, "pad": pad}
    for word, value in windows.items():
        if isinstance(value, Sequence) and len(value) != 2:
            raise LayerError(name, f"{word}: {short_repr(value)} is not (height, width)")
        options.update(_window(word, value))
    method = _choice(name, "pool", pool, POOLS)
    return build("Pooling", name, bottoms, pool=method, **options)  # type: ignore[arg-type]


def LinearLayer(name: str, bottoms: object, *, num_outputs: object, **options: object) -> LayerSpec:  # noqa: N802
    """Return an InnerProduct of the blobs `bottoms`: `num_outputs` outputs, each from every
    input value.

    `options` are InnerProduct's.  Weights start as "xavier" unless `weight_filler` says otherwise.

    >>> LinearLayer("ip1", ["pool1"], num_outputs=500, bias_term=False).type
    'InnerProduct'
    """
    options = _filled(options, "inner_product_param")
    return build("InnerProduct", name, bottoms, num_output=num_outputs, **options)  # type: ignore[arg-type]


def ActivationLayer(  # noqa: N802
    name: str, bottoms: object, *, activation: object = "relu", **options: object
) -> LayerSpec:
    """ReLU, Sigmoid, TanH …, by `activation` (a name, or the builder), of the blobs `bottoms`.

    `options` are that type's; ``in_place=True`` saves a blob.

    >>> ActivationLayer("relu1", ["ip1"], activation="tanh").type
    'TanH'
    """
    type_name = getattr(activation, "__name__", None)
    if type_name in ACTIVATIONS.values():
        return build(str(type_name), name, bottoms, **options)  # type: ignore[arg-type]
    kind = _choice(name, "activation", activation, ACTIVATIONS)
    return build(kind, name, bottoms, **options)  # type: ignore[arg-type]


def _filled(options: dict[str, object], group: str) -> dict[str, object]:
    """Adds a default filler: deep nets do not learn from Caffe's, which is 0 everywhere."""
    whole = options.get(group)
    if options.get("weight_filler") is None and not (
        isinstance(whole, Mapping) and "weight_filler" in whole
    ):
        return options | {"weight_filler": FILLER}
    return options


def _choice(layer: str, what: str, value: object, choices: Mapping[str, str]) -> str:
    match = choices.get(value.lower()) if isinstance(value, str) else None
    if match is None:
        hint = did_you_mean(value, choices)
        raise LayerError(
            layer, f"{what}: {short_repr(value)} is none of {', '.join(choices)}{hint}"
        )
    return match


def _window(word: str, value: object) -> dict[str, object]:
    """``(5, 5)`` as kernel_size 5, ``(5, 3)`` as kernel_h and kernel_w; others as they are."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        return {word: value}
    if value[0] == value[1]:
        return {word: value[0]}
    stem = "kernel" if word == "kernel_size" else word
    return {f"{stem}_h": value[0], f"{stem}_w": value[1]}
