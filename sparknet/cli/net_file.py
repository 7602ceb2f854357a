"""Arguments that name a net: its file, and its phase, level and stages."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from sparknet.cli import flags, image_flags
from sparknet.cli.verb import WrongUse

if TYPE_CHECKING:
    from sparknet.caffe import Net
    from sparknet.graph import Graph
    from sparknet.net import Net as FedNet
    from sparknet.proto.caffe_pb2 import NetParameter

MODELS = (".caffemodel", ".onnx")


def add_net(parser: ArgumentParser) -> None:
    """Add the arguments FILE or -model, -phase, -level, -stage and --dialect."""
    add_file(parser)
    flags.add(parser, "model", metavar="FILE", help="the same as FILE, as other verbs have it")
    add_phase(parser)
    flags.add_state(parser)
    flags.add_trust(parser)


def add_file(parser: ArgumentParser) -> None:
    """Add the net by position."""
    text = "a net: .prototxt, .caffemodel or .onnx"
    parser.add_argument("file", metavar="FILE", nargs="?", help=text)


def take_file(chosen: Namespace) -> None:
    """Have ``model`` be the net that was given by position, if it was."""
    if chosen.file and chosen.model:
        raise WrongUse(f"the net is {chosen.file} and {chosen.model}: give FILE or -model")
    chosen.model = chosen.model or chosen.file


def add_phase(parser: ArgumentParser, help: str = "the phase that the net is built for") -> None:
    flags.add(
        parser, "phase", type=str.lower, choices=("train", "test"), default="train", help=help
    )


def read(
    path: str,
    trusted: bool | None = None,
    unknown: str = "refuse",
    dialect: str | None = None,
) -> NetParameter:
    """Read the net of a text file, which is trusted by default, or of a model, which is not."""
    from sparknet.onnx import open_model
    from sparknet.proto import read_net, upgrade_net
    from sparknet.proto.dialect import in_dialect
    from sparknet.proto.untrusted import with_trust

    is_model = Path(path).suffix in MODELS
    net = upgrade_net(open_model(path).net) if is_model else read_net(path, unknown=unknown)
    return with_trust(in_dialect(net, dialect), trusted)


def phase_number(chosen: Namespace) -> int:
    from sparknet.proto import caffe_pb2

    return int(caffe_pb2.TEST if chosen.phase == "test" else caffe_pb2.TRAIN)


def graph(chosen: Namespace, unknown: str = "refuse") -> Graph:
    from sparknet.graph import build

    net = read(chosen.model, chosen.trusted, unknown, chosen.dialect)
    return build(net, phase_number(chosen), chosen.level, flags.stages(chosen), unknown)


def add_weighed(parser: ArgumentParser) -> None:
    """Add the flags of verbs that run a net: files, phase, precision and -threads."""
    add_model(parser)
    flags.add_precision(parser)


def add_model(parser: ArgumentParser) -> None:
    """Add the flags of a net with its weights."""
    flags.add(parser, "model", metavar="FILE", help="a net, .prototxt; or a .caffemodel or .onnx")
    flags.add(parser, "weights", metavar="FILE", help="its parameters, a .caffemodel, .h5 or .onnx")
    flags.add_state(parser)
    flags.add_trust(parser)
    flags.add_threads(parser)


def test_net(chosen: Namespace) -> Net:
    """The net of -model with -weights in the test phase, reading its own data."""
    from sparknet.caffe import TEST, Net
    from sparknet.weights import check_layers, open_weights

    flags.use_threads(chosen)
    opened = open_weights([_weights(chosen)])
    net = Net.from_proto(
        read(chosen.model, chosen.trusted, dialect=chosen.dialect),
        TEST,
        chosen.level,
        flags.stages(chosen),
        precision=chosen.precision,
        keep_blobs=False,
        models=list(opened.values()),
    )
    check_layers(net, opened)
    return net


def fed_net(chosen: Namespace) -> FedNet:
    """The net of -model with -weights, which other data can be fed to."""
    from sparknet.net import Net

    flags.use_threads(chosen)
    weights = _weights(chosen)
    stages = flags.stages(chosen)
    return Net(
        read(chosen.model, chosen.trusted, dialect=chosen.dialect),
        weights,
        level=chosen.level,
        stages=stages,
        precision=chosen.precision,
        preprocessing=image_flags.preprocessing(chosen),
    )


def _weights(chosen: Namespace) -> str:
    """The file of -weights; a caffemodel as -model contains its own."""
    flags.needed(chosen, "model")
    if not chosen.weights and Path(chosen.model).suffix not in MODELS:
        raise WrongUse("give -weights")
    return str(chosen.weights or chosen.model)
