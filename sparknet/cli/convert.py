"""`sparknet convert`: data sets as databases or block files, and models as caffemodels."""

from __future__ import annotations

import sys
import warnings
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.cli import flags, inputs, net_file
from sparknet.cli.record_files import Record, write, write_records
from sparknet.cli.verb import Verb, WrongUse, left_out
from sparknet.errors import FileError

if TYPE_CHECKING:
    from sparknet.loaders import Records


def _add_onnx(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("net", metavar="NET.prototxt")
    parser.add_argument("weights", metavar="NET.caffemodel", help="HDF5 if its name ends in .h5")
    flags.add(parser, "batch", type=flags.positive, default=1, help="records; 1 by default")
    net_file.add_axes(parser)
    parser.add_argument(
        "--strict", action="store_true", help="refuse what needs layers that stock Caffe lacks"
    )
    parser.add_argument(
        "--allow",
        type=lambda text: text.split(","),
        metavar="TYPE[,TYPE]",
        help="with --strict: further layer types, which your tool has, such as Permute",
    )


def _onnx(chosen: Namespace) -> int:
    """Write both files; a model that cannot be converted leaves none."""
    from sparknet.onnx import OnnxWarning, read_model
    from sparknet.proto import write_model, write_text
    from sparknet.proto.untrusted import unmarked

    if chosen.allow and not chosen.strict:
        raise WrongUse("--allow goes with --strict")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OnnxWarning)
        model = read_model(
            chosen.model,
            batch=chosen.batch,
            shapes=chosen.shapes,
            batch_axis=chosen.batch_axis,
            strict=chosen.allow or chosen.strict,
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


def _add_safetensors(parser: ArgumentParser) -> None:
    parser.add_argument("weights", metavar="IN", help="a .safetensors, .caffemodel, .h5 or .onnx")
    parser.add_argument(
        "out",
        metavar="OUT",
        nargs="?",
        help="a .caffemodel or .h5, or a .safetensors; of the same name beside IN unless given",
    )
    parser.add_argument("--like", metavar="NET", help="the net; a model may be its own")
    parser.add_argument(
        "--dtype",
        choices=("float32", "float16", "bf16"),
        default="float32",
        help="what a .safetensors holds; float32 by default",
    )


def _safetensors(chosen: Namespace) -> int:
    from sparknet.onnx import open_model
    from sparknet.proto import write_model
    from sparknet.weights.safetensors import (
        from_state_dict,
        is_safetensors,
        read_tensors,
        state_dict,
        write_tensors,
    )

    inwards = is_safetensors(chosen.weights)
    out = chosen.out or str(
        Path(chosen.weights).with_suffix(".caffemodel" if inwards else ".safetensors")
    )
    if inwards == is_safetensors(out):
        raise WrongUse("one of the files is a .safetensors, and the other is not")
    if inwards and not chosen.like:
        raise WrongUse("a .safetensors has no net: give --like NET.prototxt")
    net = net_file.read_text(chosen.like) if chosen.like else None
    if inwards:
        assert net is not None
        model = from_state_dict(read_tensors(chosen.weights), net)
        write_model(out, model)
        count = len(model.arrays)
    else:
        tensors = state_dict(open_model(chosen.weights), net)
        write_tensors(out, tensors, chosen.dtype)
        count = len(tensors)
    print(f"{out}: {count} {'layers' if inwards else 'arrays'}", file=sys.stderr)
    return 0


SIZE = "store images of this size; one number means a square"


def with_kind(words: Sequence[str]) -> list[str]:
    """Return the command with the kind that a file's name tells: convert model.safetensors …"""
    if list(words[:1]) != [VERB.name]:
        return list(words)
    first = next((word for word in words[1:] if not word.startswith("-")), "")
    for kind in ("safetensors", "onnx", "caffemodel") if "." in first else ():  # no kind has a dot
        if any(word.endswith(f".{kind}") for word in words[1:]):
            return [*words[:1], kind, *words[1:]]
    return list(words)


def _arguments(parser: ArgumentParser) -> None:
    kinds = parser.add_subparsers(title="kinds", metavar="KIND", required=True, dest="kind")
    mnist = _kind(kinds, "mnist", "MNIST's IDX files, plain or .gz", _mnist)
    mnist.add_argument("images", metavar="IMAGES")
    mnist.add_argument("labels", metavar="LABELS")
    _destination(mnist)
    cifar = _kind(kinds, "cifar10", "CIFAR-10's binary files", _cifar10)
    cifar.add_argument("files", metavar="FILE", nargs="+")
    _destination(cifar)
    images = _kind(kinds, "images", "a list of image files, with a label after each name", _images)
    images.add_argument("list", metavar="LIST")
    _destination(images)
    images.add_argument("--root", default="", help="a folder that the names are relative to")
    images.add_argument("--resize", type=flags.size, metavar="HEIGHTxWIDTH", help=SIZE)
    images.add_argument("--gray", action="store_true", help="store grey images")
    images.add_argument("--encoded", action="store_true", help="store the files as they are")
    _order(images)
    images.add_argument("--check-size", action="store_true", help="refuse images of several sizes")
    tars = _kind(kinds, "tars", "images in tar files, as ImageNet comes", _tars)
    tars.add_argument("files", metavar="FILE", nargs="+")
    _destination(tars)
    tars.add_argument("--labels", metavar="LIST", help="a file of lines 'name label'")
    tars.add_argument("--resize", type=flags.size, metavar="HEIGHTxWIDTH", help=SIZE)
    tars.add_argument("--gray", action="store_true", help="store grey images")
    _order(tars)
    records = _kind(kinds, "records", "records of any kind", _any)
    records.add_argument("source", metavar="SOURCE", nargs="+", help=inputs.HELP)
    _destination(records)
    _order(records)
    snapshot = _kind(kinds, "snapshot", "the weights of a snapshot, as a caffemodel", _snapshot)
    snapshot.add_argument("path", metavar="PATH", help="of a snapshot, a run or several runs")
    snapshot.add_argument("out", metavar="OUT.caffemodel", help="HDF5 if its name ends in .h5")
    model = _kind(kinds, "caffemodel", "a caffemodel, of half the size if wished", _caffemodel)
    model.add_argument("weights", metavar="IN", help="a .caffemodel, .h5 or .onnx")
    model.add_argument("out", metavar="OUT.caffemodel", help="HDF5 if its name ends in .h5")
    model.add_argument(
        "--half", action="store_true", help="write halves, as NVIDIA's Caffe does and OpenCV reads"
    )
    _add_onnx(_kind(kinds, "onnx", "an ONNX model, as a prototxt and a caffemodel", _onnx))
    _add_safetensors(
        _kind(
            kinds,
            "safetensors",
            "weights by the names of PyTorch's modules, in and out",
            _safetensors,
        )
    )
    mean = _kind(kinds, "mean", "the mean image of a database or other records", _mean)
    mean.add_argument("source", metavar="SOURCE")
    mean.add_argument("out", metavar="OUT.binaryproto")
    mean.add_argument("--backend", help=SUPPRESS)  # of earlier versions: the files tell


def _kind(
    kinds: Any, name: str, help_text: str, convert: Callable[[Namespace], int]
) -> ArgumentParser:
    parser: ArgumentParser = kinds.add_parser(name, help=help_text, description=help_text)
    parser.set_defaults(convert=convert)
    return parser


def _destination(parser: ArgumentParser) -> None:
    parser.add_argument("out", metavar="OUT", help="a new folder for the database, or a block file")
    parser.add_argument("--to", choices=("lmdb", "blocks"), default="lmdb", help="what to write")
    parser.add_argument("--skip", type=flags.count, default=0, help="the number of items to skip")
    parser.add_argument(
        "--take", type=flags.count, help="the number of items to convert (default: all)"
    )
    parser.add_argument("--mean", metavar="FILE", help="also write the mean image, a binaryproto")


def _order(parser: ArgumentParser) -> None:
    parser.add_argument("--shuffle", action="store_true", help="in random order")
    parser.add_argument("--seed", type=int, default=0, help="the seed of --shuffle")


def _execute(chosen: Namespace) -> int:
    status: int = chosen.convert(chosen)
    return status


def _mnist(chosen: Namespace) -> int:
    from sparknet.loaders import MNIST

    return write_records(chosen, MNIST(chosen.images, chosen.labels))


def _cifar10(chosen: Namespace) -> int:
    from sparknet.loaders import open_records

    return write_records(chosen, open_records(chosen.files, kind="cifar10"))


def _any(chosen: Namespace) -> int:
    return write_records(chosen, _shuffled(chosen, inputs.open_records(chosen.source)))


def _tars(chosen: Namespace) -> int:
    from sparknet.loaders import Tars

    tars = Tars(
        chosen.files,
        chosen.labels,
        size=chosen.resize,
        color=not chosen.gray,
        invalid="drop",
    )
    for number, name in enumerate(tars.classes):
        print(f"{number} {name}")
    status = write_records(chosen, _shuffled(chosen, tars))
    for reason in tars.failed.values():
        print(f"sparknet convert: {reason}", file=sys.stderr)
    return status or _left_out(len(tars.failed))


def _shuffled(chosen: Namespace, records: Records) -> Records:
    from sparknet.loaders import Order, Subset

    if not chosen.shuffle:
        return records
    return Subset(records, Order(len(records), chosen.seed).next(len(records)))


def _left_out(count: int) -> int:
    """Print how many images were left out; returns the exit status."""
    if count:
        print(f"sparknet convert: {left_out(count)}", file=sys.stderr)
    return int(count > 0)


def _images(chosen: Namespace) -> int:
    from sparknet.loaders.image_decoding import read_list

    if chosen.encoded and (chosen.resize or chosen.gray or chosen.to == "blocks"):
        raise FileError(
            chosen.list, "--encoded stores files as they are: no --resize, --gray or --to blocks"
        )
    lines = list(read_list(chosen.list))
    if chosen.shuffle:
        from sparknet.loaders import Order

        order = Order(len(lines), chosen.seed)
        lines = [lines[place] for place in order.next(len(lines))]
    failed: list[str] = []
    status = write(chosen, _pictures(chosen, lines, failed))
    return status or _left_out(len(failed))


def _pictures(
    chosen: Namespace, lines: Iterable[tuple[str, int]], failed: list[str]
) -> Iterator[Record]:
    """Yields images that can be read, and names the others on stderr, as convert_imageset does."""
    from sparknet.loaders.image_decoding import decode

    first: Any = None
    for name, label in lines:
        path = str(Path(chosen.root) / name)
        try:
            image = decode(path, path, not chosen.gray, chosen.resize)
            value = Path(path).read_bytes() if chosen.encoded else image
        except OSError as error:
            print(f"sparknet convert: {error}", file=sys.stderr)
            failed.append(path)
            continue
        first = image.shape if first is None else first
        if chosen.check_size and image.shape != first:
            raise FileError(path, f"is {image.shape}; the first image is {first}")
        yield f"_{name}", value, label


def _snapshot(chosen: Namespace) -> int:
    from sparknet.loaders.preprocessing import Preprocessing
    from sparknet.net.model_inputs import ModelInputs
    from sparknet.training.checkpoints.runs import FolderRuns, find
    from sparknet.training.checkpoints.snapshot import model, read_manifest

    store, round = find(FolderRuns, chosen.path)
    model(store, round).save(chosen.out)
    how = read_manifest(store, round)["run"].get("preprocessing")
    images = None if how is None else Preprocessing.from_json(str(how), store.path(round))
    ModelInputs(preprocessing=images).write_beside(chosen.out)
    print(f"{chosen.out}: the weights of {store.path(round)}", file=sys.stderr)
    return 0


def _caffemodel(chosen: Namespace) -> int:
    from sparknet.net.model_inputs import ModelInputs
    from sparknet.onnx import open_model
    from sparknet.proto import write_model
    from sparknet.weights.files import prepare

    write_model(prepare(chosen.out), open_model(chosen.weights), half=chosen.half)
    (ModelInputs.beside(chosen.weights) or ModelInputs()).write_beside(chosen.out)
    print(f"{chosen.out}: {Path(chosen.out).stat().st_size:,} bytes", file=sys.stderr)
    return 0


def _mean(chosen: Namespace) -> int:
    from sparknet.loaders import mean_of
    from sparknet.proto import write_blob

    mean = mean_of(inputs.open_records([chosen.source]))
    write_blob(chosen.out, mean, legacy=True)
    for channel, plane in enumerate(mean):
        print(f"mean_value of channel {channel}: {plane.mean():g}")
    return 0


VERB = Verb(
    "convert",
    "Convert data sets for Data layers or to a block file, snapshots and ONNX models to "
    "caffemodels.",
    _arguments,
    _execute,
)
