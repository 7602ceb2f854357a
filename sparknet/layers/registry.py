"""The layer types: one line each, and how a layer is made from its description.

A module is imported when its type is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from sparknet.errors import LayerError
from sparknet.forks import TYPES
from sparknet.layers.layer import Arity, Layer
from sparknet.proto import caffe_pb2
from sparknet.proto.forks import origin
from sparknet.proto.suggest import did_you_mean

_OWN = {
    # the type and its module in sparknet.layers; those of forks: sparknet.forks
    # windows, shapes, weights, normalisation
    "Axpy": "axpy",
    "BN": "bn",
    "BatchGather": "batch_gather",
    "BatchNorm": "batch_norm",
    "Bias": "bias",
    "Concat": "concat",
    "Convolution": "convolution",
    "ConvolutionDepthwise": "convolution_depthwise",
    "Crop": "crop",
    "Deconvolution": "deconvolution",
    "DepthwiseConvolution": "depthwise_convolution",
    "Div": "div",
    "Eltwise": "eltwise",
    "Embed": "embed",
    "Flatten": "flatten",
    "Gather": "gather",
    "GridSample": "grid_sample",
    "HardSwish": "hard_swish",
    "Im2col": "im2col",
    "InnerProduct": "inner_product",
    "Interp": "interp",
    "LRN": "lrn",
    "LayerNorm": "layer_norm",
    "MVN": "mvn",
    "MatMul": "matmul",
    "Math": "math",
    "MMDLoss": "mmd_loss",
    "Mish": "mish",
    "Normalize": "normalize",
    "Permute": "permute",
    "Pooling": "pooling",
    "RecordWeights": "record_weights",
    "Reduction": "reduction",
    "Reshape": "reshape",
    "Resize": "resize",
    "Reverse": "reverse",
    "SPP": "spp",
    "Scale": "scale",
    "ShuffleChannel": "shuffle_channel",
    "SizedLike": "sized_like",
    "Slice": "slice",
    "Split": "split",
    "Tile": "tile",
    "Transpose": "transpose",
    "Upsample": "upsample",
    "Where": "where",
    # activations, losses, sources, recurrent layers, detection, Python
    "AbsVal": "absval",
    "Accuracy": "accuracy",
    "ArgMax": "argmax",
    "BatchReindex": "batch_reindex",
    "BNLL": "bnll",
    "Clip": "clip",
    "ContrastiveLoss": "contrastive_loss",
    "CumSum": "cum_sum",
    "Data": "data",
    "Dropout": "dropout",
    "DummyData": "dummy_data",
    "ELU": "elu",
    "EuclideanLoss": "euclidean_loss",
    "Exp": "exp",
    "Filter": "filter",
    "FocalLoss": "focal_loss",
    "GELU": "gelu",
    "GRU": "gru",
    "HDF5Data": "hdf5_data",
    "HDF5Output": "hdf5_output",
    "HingeLoss": "hinge_loss",
    "ImageData": "image_data",
    "InfogainLoss": "infogain_loss",
    "Input": "input",
    "Log": "log",
    "LogSoftmax": "log_softmax",
    "LSTM": "lstm",
    "LSTMUnit": "lstm_unit",
    "MemoryData": "memory_data",
    "MultinomialLogisticLoss": "multinomial_logistic_loss",
    "Parameter": "parameter",
    "Power": "power",
    "PReLU": "prelu",
    "Python": "python",
    "ReLU": "relu",
    "ReLU6": "relu6",
    "RNN": "rnn",
    "Sigmoid": "sigmoid",
    "SigmoidCrossEntropyLoss": "sigmoid_cross_entropy_loss",
    "Silence": "silence",
    "Softmax": "softmax",
    "SoftmaxWithLoss": "softmax_with_loss",
    "SpatialDropout": "spatial_dropout",
    "Swish": "swish",
    "TanH": "tanh",
    "Threshold": "threshold",
    "TripletLoss": "triplet_loss",
    "WindowData": "window_data",
}


class LayerTypes(Mapping[str, type[Layer]]):
    """Layer types by Caffe's type name."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules
        self._classes: dict[str, type[Layer]] = {}

    def __getitem__(self, type_name: str) -> type[Layer]:
        found = self._classes.get(type_name)
        if found is None:
            module = import_module(self._modules[type_name])
            found = getattr(module, type_name, None) or getattr(module, f"{type_name}Layer")
            self._classes[type_name] = found
        return found

    def __contains__(self, type_name: object) -> bool:
        return type_name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


MODULES = {name: f"sparknet.layers.{module}" for name, module in _OWN.items()} | TYPES
LAYERS = LayerTypes(MODULES)


def make(parameter: caffe_pb2.LayerParameter, phase: int) -> Layer:
    """The layer that ``parameter`` describes, its bottoms and tops counted."""
    if parameter.type not in LAYERS:
        raise LayerError(parameter.name, _unknown(parameter.type))
    layer = LAYERS[parameter.type](parameter, phase)
    check_counts(layer, len(parameter.bottom), len(parameter.top))
    return layer


def check_counts(layer: Layer, bottoms: int, tops: int) -> None:
    """Caffe: layer.hpp, CheckBlobCounts; after net.cpp has added automatic tops."""
    if layer.auto_tops:
        tops = max(tops, layer.tops.least)
    _check_arity(layer, layer.bottoms, bottoms, "bottom")
    _check_arity(layer, layer.tops, tops, "top")
    if layer.equal_counts and bottoms != tops:
        layer.fail(
            "needs as many tops as bottoms; "
            f"it has {_counted(bottoms, 'bottom')} and {_counted(tops, 'top')}"
        )


def _check_arity(layer: Layer, arity: Arity, found: int, what: str) -> None:
    if not arity.accepts(found):
        plural = "" if (arity.most or arity.least) == 1 else "s"
        layer.fail(f"takes {arity} {what}{plural}; it has {found}")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _unknown(type_name: str) -> str:
    if not type_name:
        return f"has no type; sparknet knows {len(LAYERS)} layer types"
    whose = origin("type", type_name)
    hint = did_you_mean(type_name, LAYERS) or ";"
    return f"unknown type '{type_name}'{whose}{hint} sparknet knows {len(LAYERS)} layer types"
