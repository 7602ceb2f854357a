"""Arguments that name a net: its file, and its phase, level and stages."""

from __future__ import annotations

import sys
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.cli import flags, image_flags
from sparknet.cli.verb import WrongUse
from sparknet.errors import FileError, LayerError

if TYPE_CHECKING:
    from sparknet.caffe import Net
    from sparknet.graph import Graph
    from sparknet.net import Net as FedNet
    from sparknet.proto import Model
    from sparknet.proto.caffe_pb2 import NetParameter, SolverParameter
    from sparknet.weights import Opened

MODELS = (".caffemodel", ".onnx")
NETS = (".prototxt", ".pt", *MODELS)


def add_net(parser: ArgumentParser) -> None:
    """Add the arguments NET or -model, -phase, -level, -stage and --dialect."""
    add_file(parser)
    add_phase(parser)
    flags.add_state(parser)
    flags.add_trust(parser)
    add_axes(parser)


def add_axes(parser: ArgumentParser) -> None:
    """Add the flags --shape and --batch-axis."""
    add = parser.add_argument
    add(
        *("--shape", "--shapes"),
        dest="shapes",
        type=_shape,
        action=_Named,
        metavar="INPUT=Nx3x224x224",
        help="the shape of an input of a .onnx, N for a size that stays open, or the value of an "
        "input of one number (sr=16000); can be repeated",
    )
    add(
        "--batch-axis",
        type=_axis,
        action=_Named,
        metavar="INPUT=0",
        help="the axis along which an input of a .onnx has its records; can be repeated",
    )


class _Named(Action):
    """Pairs of a name and a value, as a dict."""

    def __call__(self, parser: Any, chosen: Namespace, values: Any, option: Any = None) -> None:
        setattr(chosen, self.dest, {**(getattr(chosen, self.dest) or {}), values[0]: values[1]})


def _shape(text: str) -> tuple[str, list[int | None]]:
    name, _, sizes = text.rpartition("=")
    parts = sizes.split("x")
    if not name or not all(_is_size(part) or part in ("N", "?") for part in parts):
        raise ArgumentTypeError(f"'{text}' is no shape: write it as data=1x3x224x224")
    return name, [int(part) if _is_size(part) else None for part in parts]


def _is_size(text: str) -> bool:
    return text.isdecimal() and int(text) < 1 << 31


def _axis(text: str) -> tuple[str, int]:
    name, _, axis = text.rpartition("=")
    if not name or not axis.lstrip("-").isdecimal():
        raise ArgumentTypeError(f"'{text}' is no axis: write it as data=0")
    return name, int(axis)


def add_file(parser: ArgumentParser) -> None:
    """Add the net, by position or as -model."""
    text = "a net: .prototxt, .caffemodel, .onnx or the folder of a saved model"
    parser.add_argument("file", metavar="NET", nargs="?", help=text)
    flags.add(parser, "model", metavar="FILE", help="the same as NET")


def add_solver(parser: ArgumentParser) -> None:
    """Add the solver, by position or as -solver, and -model."""
    parser.add_argument("file", metavar="SOLVER", nargs="?", help="a solver, .prototxt")
    flags.add(parser, "solver", metavar="FILE", help="the same as SOLVER")
    flags.add(parser, "model", metavar="FILE", help="a net in place of the one the solver names")


def take_learned(chosen: Namespace) -> None:
    """Have ``model`` be a net that has learned, if one stands in the solver's place."""
    if chosen.file and Path(chosen.file).suffix in MODELS and not chosen.model:
        chosen.model, chosen.file = chosen.file, None


def take_solver(chosen: Namespace) -> None:
    """Have ``solver`` be the one that was given by position, if it was."""
    if chosen.file and chosen.solver:
        raise WrongUse(f"the solver is {chosen.file} and {chosen.solver}: give SOLVER or -solver")
    chosen.solver = chosen.solver or chosen.file
    if not chosen.solver:
        raise WrongUse("give SOLVER or -solver")


def read_solver(chosen: Namespace) -> SolverParameter:
    """Return the solver of -solver, changed by the other flags of nets."""
    from sparknet.caffe.solvers.nets import settings
    from sparknet.proto import solver_in_dialect
    from sparknet.proto.untrusted import solver_with_trust

    if is_recipe(chosen):
        solver = _recipe(chosen)
    else:
        model = open_model_file(chosen.model, chosen) if chosen.model else None
        net = read_text(chosen.model, chosen.trusted, model=model) if chosen.model else None
        solver = solver_with_trust(settings(chosen.solver, net), chosen.trusted)
        solver = solver_in_dialect(solver, chosen.dialect)
    solver.train_state.level = chosen.level
    solver.train_state.stage.extend(flags.stages(chosen))
    if chosen.weights or chosen.snapshot:
        # They replace those of the solver file.  Caffe: tools/caffe.cpp, train.
        del solver.weights[:]
    if chosen.weights:
        solver.weights.append(chosen.weights)
    if chosen.iterations:
        solver.max_iter = chosen.iterations
    return solver


def is_recipe(chosen: Namespace) -> bool:
    """Return whether a net that comes with its weights gets a new head."""
    head = getattr(chosen, "head", None)
    return bool(head and chosen.model and Path(chosen.model).suffix in MODELS)


def _recipe(chosen: Namespace) -> SolverParameter:
    """Return the solver, or the usual one, of a model that `sparknet.train` reads."""
    from sparknet.caffe.solvers.nets import settings
    from sparknet.net.recipe import usual

    solver = settings(chosen.solver, chosen.model) if chosen.solver else usual()
    solver.net = chosen.model
    if not solver.snapshot_prefix:
        solver.snapshot_prefix = str(Path(chosen.model).with_suffix(""))
    return solver


def add_out(parser: ArgumentParser, metavar: str, help: str) -> None:
    """Add the file that is written, behind the net or as --out."""
    parser.add_argument("out_file", metavar=metavar, nargs="?", help=help)
    flags.add(parser, "out", metavar="FILE", help=f"the same as {metavar}")


def take_words(chosen: Namespace) -> None:
    """Share out the words without a flag: the net, unless -model names it, then INPUT or OUT."""
    before = (chosen.file, getattr(chosen, "out_file", None), *getattr(chosen, "inputs", ()))
    words = [word for word in before if word]
    is_out = "out_file" in chosen and chosen.model and len(words) == 1
    is_net = bool(words) and (Path(words[0]).suffix in NETS or _is_folder(words[0]))
    if words and not is_out and ("inputs" not in chosen or is_net):
        if chosen.model:
            raise WrongUse(f"the net is {words[0]} and {chosen.model}: give NET or -model")
        chosen.model = words.pop(0)
    if "inputs" in chosen:
        chosen.inputs = words
    elif words and chosen.out:
        raise WrongUse(f"the output is {words[0]} and {chosen.out}: give one")
    elif words:
        chosen.out = words[0]
    if not chosen.model and "solver" not in chosen:
        if words and not Path(words[0]).exists():
            raise FileError(words[0], "no such file or folder")
        raise WrongUse("give NET or -model")
    _enter_folder(chosen)


def _is_folder(word: str) -> bool:
    from sparknet.weights.files import is_model_folder

    return is_model_folder(word)


def _enter_folder(chosen: Namespace) -> None:
    """Name the net and the weights in the folder of a saved model."""
    from sparknet.net.model_folder import NET
    from sparknet.weights.files import WEIGHTS

    if not chosen.model or not _is_folder(chosen.model):
        return
    folder = Path(chosen.model)
    if not (folder / NET).is_file():
        raise FileError(folder, "is a module of PyTorch: sparknet.load reads it")
    chosen.model = str(folder / NET)
    if "weights" in chosen and not chosen.weights and (folder / WEIGHTS).is_file():
        chosen.weights = str(folder / WEIGHTS)


def add_phase(parser: ArgumentParser, help: str = "the phase that the net is built for") -> None:
    flags.add(
        parser, "phase", type=str.lower, choices=("train", "test"), default="train", help=help
    )


def read_text(
    path: str,
    trusted: bool | None = None,
    unknown: str = "refuse",
    dialect: str | None = None,
    model: Model | None = None,
) -> NetParameter:
    """Read the net of a text file, which is trusted by default, or of a model, which is not."""
    from sparknet.onnx import open_model
    from sparknet.proto import read_net
    from sparknet.proto.forks import in_dialect
    from sparknet.proto.untrusted import with_trust

    if model is None and Path(path).suffix in MODELS:
        model = open_model(path)
    net = read_net(path, unknown=unknown) if model is None else model.net
    return with_trust(in_dialect(net, dialect), trusted)


def open_model_file(path: str, chosen: Namespace, describes: bool = False) -> Model | None:
    """Return the model that a file is; None for a prototxt.  --shape is for verbs that describe."""
    from sparknet.onnx import open_model
    from sparknet.onnx.inputs import refuse_axes

    shapes, axes = getattr(chosen, "shapes", None), getattr(chosen, "batch_axis", None)
    if Path(path).suffix in MODELS:
        return open_model(path, shapes=shapes, batch_axis=axes, trusted=chosen.trusted)
    refuse_axes(path, None if describes else shapes, axes)
    return None


def phase_number(chosen: Namespace) -> int:
    from sparknet.proto import caffe_pb2

    return int(caffe_pb2.TEST if chosen.phase == "test" else caffe_pb2.TRAIN)


def graph(chosen: Namespace, unknown: str = "refuse", model: Model | None = None) -> Graph:
    from sparknet.graph import build

    model = model or open_model_file(chosen.model, chosen, describes=True)
    net = read_text(chosen.model, chosen.trusted, unknown, chosen.dialect, model)
    if model is None:
        net = _with_stand_ins(net, chosen)
    return build(net, phase_number(chosen), chosen.level, flags.stages(chosen), unknown)


def _with_stand_ins(net: NetParameter, chosen: Namespace) -> NetParameter:
    """Return the net with inputs for data layers without files, sized by --shape or a crop."""
    from sparknet.graph.state import filter_net, net_state
    from sparknet.layers import make
    from sparknet.net.entries import Entry, source_layers, with_inputs

    phase, shapes = phase_number(chosen), chosen.shapes or {}
    filtered = filter_net(net, net_state(net, phase, chosen.level, flags.stages(chosen)))
    entries, missing = list[Entry](), set[str]()
    for layer, kind in source_layers(filtered):
        top = layer.top[0] if layer.top else ""
        try:
            is_there = top not in shapes and (layer.untrusted or make(layer, phase).plan(()))
            if not kind.reads_files or is_there:  # the build says what is not trusted
                continue
            reason = "--shape says so"
        except LayerError as error:
            if not isinstance(error.__context__, OSError):
                raise
            reason = str(error)
        options, param = getattr(layer, str(kind.field)), layer.transform_param
        crop, grey = param.crop_size, param.force_gray or len(param.mean_value) == 1
        assumed = (getattr(options, "batch_size", 1), 1 if grey else 3, crop, crop)
        shape = tuple(size or 1 for size in shapes.get(top, assumed))
        if not crop and top not in shapes:
            raise WrongUse(reason, f"say what it holds: --shape {top}=NxCxHxW")
        print(f"'{top}' is taken for {' x '.join(map(str, shape))}: {reason}", file=sys.stderr)
        missing.add(layer.name)
        entries += [
            Entry(name, (shape[0],) if place else shape, layer.name, layer.type)
            for place, name in enumerate(layer.top)
        ]
    return with_inputs(filtered, entries, missing) if missing else net


def add_weighed(parser: ArgumentParser) -> None:
    """Add the flags of verbs that run a net: files, phase, precision and -threads."""
    add_model(parser)
    flags.add_precision(parser)


def add_model(parser: ArgumentParser) -> None:
    """Add the flags of a net with its weights."""
    add_file(parser)
    flags.add(parser, "weights", metavar="FILE", help="its parameters, a .caffemodel, .h5 or .onnx")
    flags.add_state(parser)
    flags.add_trust(parser)
    flags.add_threads(parser)
    add_axes(parser)


def test_net(chosen: Namespace) -> Net:
    """Return the net of -model with -weights in the test phase, reading its own data."""
    from sparknet.caffe import TEST
    from sparknet.weights import check_layers, open_weights

    flags.use_threads(chosen)
    model = open_model_file(chosen.model, chosen)
    files = open_weights([weights(chosen)], {} if model is None else {chosen.model: model})
    described = read_text(chosen.model, chosen.trusted, dialect=chosen.dialect, model=model)
    net = caffe_net(chosen, described, TEST, files)
    check_layers(net, files)
    return net


def caffe_net(chosen: Namespace, described: NetParameter, phase: int, files: Opened) -> Net:
    """Return pycaffe's net with the weights of files, by the flags of `add_state`."""
    from sparknet.caffe import Net

    return Net.from_proto(
        described,
        phase,
        chosen.level,
        flags.stages(chosen),
        precision=chosen.precision,
        keep_blobs=False,
        models=list(files.values()),
    )


def fed_net(chosen: Namespace) -> FedNet:
    """Return the net of -model with -weights, which other data can be fed to."""
    from sparknet.net import Net

    flags.use_threads(chosen)
    has_weights = chosen.weights or Path(chosen.model).suffix in MODELS
    files = weights(chosen) if has_weights else None
    is_whole = Path(chosen.model).suffix == ".onnx"
    net = Net(
        chosen.model if is_whole else _of_file(chosen),
        chosen.weights if is_whole else files,
        level=chosen.level,
        stages=flags.stages(chosen),
        trusted=chosen.trusted,
        dialect=chosen.dialect if is_whole else None,
        precision=chosen.precision,
        preprocessing=image_flags.preprocessing(chosen),
        shapes=chosen.shapes,
        batch_axis=chosen.batch_axis,
    )
    if not has_weights and net.net.params:
        weights(chosen)
    if (inputs := image_flags.beside(chosen)) is not None:
        net.labels, net.features = inputs.labels or net.labels, inputs.features
        net.tested.knows_pictures = True
    return net


def _of_file(chosen: Namespace) -> NetParameter:
    """Return the net of -model; that of a saved model's folder reads the folder's own files."""
    from sparknet.net.model_folder import NET, complete, folder_net, read_folder
    from sparknet.weights.files import is_model_folder

    path = Path(chosen.model)
    if path.name == NET and is_model_folder(path.parent):
        with complete(path.parent):
            return folder_net(path.parent, read_folder(path.parent), bool(chosen.trusted))
    return read_text(chosen.model, chosen.trusted, dialect=chosen.dialect)


def weights(chosen: Namespace) -> str:
    """Return the file of -weights; a caffemodel as -model contains its own."""
    if not chosen.weights and Path(chosen.model).suffix not in MODELS:
        raise WrongUse("give -weights")
    return str(chosen.weights or chosen.model)
