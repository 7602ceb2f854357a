"""`sparknet convert onnx`: an ONNX model as a prototxt and a caffemodel."""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser, Namespace

from sparknet.cli import flags, net_file


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("net", metavar="NET.prototxt")
    parser.add_argument("weights", metavar="NET.caffemodel", help="HDF5 if its name ends in .h5")
    flags.add(parser, "batch", type=flags.positive, default=1, help="records; 1 by default")
    net_file.add_axes(parser)
    parser.add_argument(
        "--strict", action="store_true", help="refuse what needs layers that stock Caffe lacks"
    )


def convert(chosen: Namespace) -> int:
    """Write both files; a model that cannot be converted leaves none."""
    from sparknet.onnx import OnnxWarning, read_model
    from sparknet.proto import write_model, write_text
    from sparknet.proto.untrusted import unmarked

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OnnxWarning)
        model = read_model(
            chosen.model,
            batch=chosen.batch,
            shapes=chosen.shapes,
            batch_axis=chosen.batch_axis,
            strict=chosen.strict,
        )
    for warning in caught:
        print(f"sparknet convert: {warning.message}", file=sys.stderr)
    net = unmarked(model.net)
    net.ClearField("int8_param")  # Stock Caffe refuses text that it does not know.
    for layer in net.layer:
        del layer.blobs[:]
    write_model(chosen.weights, model)
    write_text(chosen.net, net)
    count = sum(array.size for arrays in model.arrays for array in arrays if array is not None)
    print(f"{chosen.net}: {len(net.layer)} layers, {count} parameters", file=sys.stderr)
    return 0
