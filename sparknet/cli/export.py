"""`sparknet export`: writes a net as an ONNX model."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import TYPE_CHECKING, Any

from sparknet.cli import flags, net_file
from sparknet.cli.verb import Verb, WrongUse
from sparknet.errors import DataError, FileError

if TYPE_CHECKING:
    from sparknet.caffe import Net
    from sparknet.loaders.preprocessing import Preprocessing
    from sparknet.proto import Model

MOST_DIFFERENCE = 1e-4
ROUNDED = 0.05
"""The most of nets that are written in eight bits."""


def _arguments(parser: ArgumentParser) -> None:
    add = partial(flags.add, parser)
    net_file.add_model(parser)
    net_file.add_out(parser, "OUT.onnx", "the ONNX model to write")
    parser.add_argument("--opset", type=flags.positive, default=17, help="17 by default")
    add(
        "batch", type=flags.positive, metavar="N", help="fix the number of records; else it is open"
    )
    parser.add_argument(
        "--preprocessing",
        action="store_true",
        help="put the mean and scale of the net's transform_param inside",
    )
    parser.add_argument("--check", action="store_true", help="compare the model with onnxruntime")
    parser.add_argument(
        "--inputs",
        dest="check_inputs",
        metavar="FILE.npz",
        help="with --check: values of the inputs, not random ones",
    )


def _execute(chosen: Namespace) -> int:
    from sparknet.caffe import TEST, Net
    from sparknet.caffe.weights_io import as_model
    from sparknet.graph.records import set_batch
    from sparknet.onnx import write_model
    from sparknet.weights import check_layers, open_weights

    net_file.take_words(chosen)
    if not chosen.out:
        raise WrongUse("name the model to write: OUT.onnx")
    weights = net_file.weights(chosen)
    flags.use_threads(chosen)
    if chosen.check_inputs and not chosen.check:
        raise WrongUse("--inputs goes with --check")
    source = net_file.open_model_file(chosen.model, chosen)
    described = net_file.read_text(
        chosen.model, chosen.trusted, dialect=chosen.dialect, model=source
    )
    images = _images(chosen.model, described, source)
    transform = _transform(described) if chosen.preprocessing else None
    if chosen.batch:
        set_batch(described, chosen.batch)
    files = open_weights([weights], {} if source is None else {chosen.model: source})
    models = list(files.values())
    net = Net.from_proto(described, TEST, chosen.level, flags.stages(chosen), models=models)
    check_layers(net, files)
    write_model(
        chosen.out,
        as_model(net._runtime),
        opset=chosen.opset,
        dynamic_batch=chosen.batch is None,
        preprocessing=transform,
        images=images,
        labels=_labels(chosen.model, source),
    )
    print(f"{chosen.out}: opset {chosen.opset}", file=sys.stderr)
    return _check(chosen, net, transform) if chosen.check else 0


def _images(path: str, net: Any, model: Model | None) -> Preprocessing | None:
    """Return what happens to images: by a .onnx, a transform_param or the file beside the net."""
    from sparknet.cli.image_flags import settings_beside
    from sparknet.loaders.preprocessing import Preprocessing
    from sparknet.onnx.source import preprocessing_of

    if model is not None and (known := preprocessing_of(model, path)) is not None:
        return known
    for layer in net.layer:
        if layer.HasField("transform_param") and not layer.transform_param.HasField("mean_file"):
            return Preprocessing.of_param(layer.transform_param, None)
    return Preprocessing.of(settings_beside(path))


def _labels(path: str, model: Model | None) -> tuple[str, ...]:
    """Return the names of classes, by a .onnx or the file beside the net."""
    from sparknet.net.model_inputs import ModelInputs
    from sparknet.onnx.source import labels_of

    inputs = ModelInputs.beside(path) or ModelInputs()
    return (() if model is None else labels_of(model, path)) or inputs.labels


def _transform(net: Any) -> Any:
    for layer in net.layer:
        if layer.HasField("transform_param"):
            return layer.transform_param
    raise WrongUse("the net has no transform_param for --preprocessing")


def _check(chosen: Namespace, net: Net, transform: Any) -> int:
    """Run both on the same inputs; prints the largest difference."""
    import numpy as np

    from sparknet.onnx.onnxruntime_check import largest_difference, results, run

    arrays = _read_arrays(chosen.check_inputs) if chosen.check_inputs else {}
    rng = np.random.default_rng(1)
    feeds: dict[str, Any] = {}
    for name in net.inputs:
        blob = net.blobs[name]
        value = arrays.get(name)
        if value is None:
            value = rng.random(blob.data.shape)
        elif value.shape[1:] != blob.data.shape[1:]:
            raise DataError(
                f"input '{name}' is {blob.data.shape}, {chosen.check_inputs} has {value.shape}"
            )
        else:
            blob.reshape(*value.shape)
        feeds[name] = np.asarray(value, np.float32)
    net.reshape()
    for name, value in feeds.items():
        net.blobs[name].data[...] = value
    if transform is not None:
        first = net.inputs[0]
        mean = np.asarray(list(transform.mean_value) or [0], np.float32).reshape(1, -1, 1, 1)
        net.blobs[first].data[...] = (feeds[first] - mean) * transform.scale
        feeds[f"{first}/raw"] = feeds[first]
    net.forward()
    want = run(chosen.out, feeds)
    worst = largest_difference(results(net.blobs, want), want)
    print(f"largest difference: {worst:.2g} of the largest value")
    most = MOST_DIFFERENCE if net.int8_param is None else ROUNDED
    if worst <= most:
        return 0
    print(f"sparknet export: that is more than {most:g}", file=sys.stderr)
    return 1


def _read_arrays(path: str) -> dict[str, Any]:
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError) as error:
        raise FileError(path, f"is no .npz file: {error}") from error


VERB = Verb("export", "Write a net with its weights as an ONNX model.", _arguments, _execute)
