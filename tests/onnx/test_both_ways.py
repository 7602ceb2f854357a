"""Layer types that export to ONNX does not write, each with its reason."""

import pytest

from sparknet.layers import LAYERS
from sparknet.layers.python import Python
from sparknet.layers.source_layer import SourceLayer
from sparknet.onnx import operators, writers
from sparknet.onnx.layer_export import WRITERS

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
