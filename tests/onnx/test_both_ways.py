"""What ONNX import reads and export does not write, and the reverse; each with its reason."""

import ast
from collections.abc import Iterable

import pytest

from sparknet.layers import LAYERS
from sparknet.layers.python import Python
from sparknet.layers.source_layer import SourceLayer
from sparknet.onnx import operators, writers
from sparknet.onnx.layer_export import WRITERS
from sparknet.onnx.step import OPERATORS
from tests.goldens import ROOT
from tests.onnx.graphs import onnx

READ_ONLY = {
    "becomes layers that are written as other operators": (
        *("ArgMin", "CastLike", "Celu", "Col2Im", "DepthToSpace", "Einsum", "GatherElements"),
        *(
            "DFT",
            "GeluHalf",
            "GeluTanh",
            "GlobalAveragePool",
            "GlobalMaxPool",
            "GroupNormalization",
        ),
        *("ImageScaler", "InstanceNormalization", "LpNormalization", "Mean", "Neg"),
        *("RMSNormalization", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
        *("ReduceMin", "ScatterND", "Selu", "Softsign", "SpaceToDepth", "Sum", "ThresholdedRelu"),
        *("ConstantOfShape", "Range", "Swish", "Trilu", "Upsample"),
    ),
    "truth values are numbers in a net, so that arithmetic or a Threshold is written": (
        *("And", "Equal", "GreaterOrEqual", "IsNaN", "LessOrEqual", "Not", "Or", "Xor"),
    ),
    "layers of whole sequences are written step by step, as Caffe's forms differ": (
        *("GRU", "LSTM", "RNN"),
    ),
    "does nothing in the test phase, of which an exported net is": ("Dropout", "StopGradient"),
    "stands in scikit-learn's pipelines, and a net has simpler operators for it": (
        *("ai.onnx.ml.LinearClassifier", "ai.onnx.ml.LinearRegressor", "ai.onnx.ml.Normalizer"),
        *("ai.onnx.ml.Scaler", "ai.onnx.ml.TreeEnsemble", "ai.onnx.ml.TreeEnsembleClassifier"),
        *("ai.onnx.ml.TreeEnsembleRegressor", "ai.onnx.ml.ZipMap"),
    ),
    "no operator of ONNX, but how export writes a DetectionOutput": ("sparknet.Detections",),
}

WRITE_ONLY = {
    "a part of what is written for GELU, and read as that pattern": ("Erf",),
    "a part of what is written for a DetectionOutput, and read as that pattern": (
        *("NonMaxSuppression", "Shape"),
    ),
    "makes Caffe's places out of those of a MaxPool, which import refuses": ("Mod",),
}

LAYERS_NOT_WRITTEN = {
    "the number of boxes is known only in the forward pass, by rules of its fork": (
        *("BoxGroupOutput", "BoxOutput", "DecodeBBox", "FrcnnOutput", "Proposal"),
        *("ScaleRoute", "YoloDetectionOutput", "Yolov3DetectionOutput"),
    ),
    "chooses or weighs examples of a loss, and a net is written for testing": (
        *("BoxAnnotatorOHEM", "RecordWeights", "TrueBoxes"),
    ),
    "is part of a loss of face recognition, and a net is written for testing": (
        *("ChannelScale", "InnerDistance", "LabelSpecificAdd", "MarginInnerProduct"),
    ),
    "filters on a permutohedral lattice, for which ONNX has no operator": (
        *("DenseCRF", "MultiStageMeanfield"),
    ),
    "cuts or averages regions as no operator of ONNX does": (*("PSROIPooling", "ROIAlign"),),
    "rounds sizes up in some axes only, as no operator of ONNX does": ("Pooling3D",),
    "the number of its items is known only in the forward pass": ("Filter",),
    "has no top, so that there is nothing to write": ("HDF5Output", "Silence"),
}


def listed(reasons: dict[str, tuple[str, ...]]) -> list[str]:
    names = [name for group in reasons.values() for name in group]
    assert len(names) == len(set(names))
    return sorted(names)


@pytest.fixture(scope="module", autouse=True)
def registered():
    operators.load()
    writers.load()


def written() -> set[str]:
    """The operators of ONNX that the code of export names."""
    known = {schema.name for schema in onnx.defs.get_all_schemas()}
    room = ROOT / "sparknet" / "onnx"
    files = (*(room / "writers").glob("*.py"), room / "writing.py", room / "layer_export.py")
    return {name for file in files for name in named(ast.parse(file.read_text()))} & known


def named(tree: ast.Module) -> Iterable[str]:
    """Its strings but those of decorators, which are layer types."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    types = {
        id(part) for one in functions for above in one.decorator_list for part in ast.walk(above)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in types:
            yield node.value


def test_operators_that_are_read_and_not_written():
    assert sorted(OPERATORS.keys() - written()) == listed(READ_ONLY)


def test_operators_that_are_written_and_not_read():
    assert sorted(written() - OPERATORS.keys()) == listed(WRITE_ONLY)


def test_layer_types_that_are_not_written():
    """Losses, data layers and what judges are left out of what is written."""
    missing = [
        name
        for name, layer in LAYERS.items()
        if name not in WRITERS
        and not (layer.is_loss or layer.compares_labels or layer.is_split)
        and not issubclass(layer, (Python, SourceLayer))
    ]
    assert sorted(missing) == listed(LAYERS_NOT_WRITTEN)
