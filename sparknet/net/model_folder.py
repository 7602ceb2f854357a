"""A model as files: a folder of model.json, net.prototxt, weights.caffemodel and the files that the
net names; or a caffemodel with the net and model.json's words beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError, SparkNetError
from sparknet.layers import LAYERS
from sparknet.layers.losses import InfogainLoss
from sparknet.layers.source_layer import SourceLayer
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net.files import exists, output_file
from sparknet.net.model_inputs import ModelInputs
from sparknet.net.net import Net
from sparknet.net.portable import Portable, portable_net, process_folder
from sparknet.net.quantize import in_int8
from sparknet.net.scratch import scratch_folder
from sparknet.proto import Model, caffe_pb2, parse_net, write_model, write_text
from sparknet.proto.byte_source import open_file, read_file
from sparknet.proto.untrusted import NET_FILES, check_solver_files, mark
from sparknet.weights.files import WEIGHTS

NetParameter = caffe_pb2.NetParameter
StrPath = str | os.PathLike[str]

NET, TOKENIZER = "net.prototxt", "tokenizer.json"
SUFFIXES = (".caffemodel", ".h5")
FILES = "files"
"""What metadata call the sizes and check sums of the other files."""
_OWN = re.compile(r"sparknet-file-[0-9a-f]{32}")
"""The names that `Portable` gives to files."""
_NAME = re.compile(r"\w[\w.-]*")
_AT_ONCE = 1 << 20
_LARGEST = 1 << 28


# -- writing -------------------------------------------------------------------------------------


def save_model(net: Net, path: StrPath, said: ModelInputs) -> None:
    """Write a folder; or a caffemodel (.h5: HDF5), and beside it its net and what it cannot say."""
    suffix = Path(path).suffix
    stem = os.fspath(path).removesuffix(suffix)
    if suffix not in SUFFIXES:

        def fill(folder: Path) -> dict[str, Any]:
            if said.tokenizer is not None:
                (folder / TOKENIZER).write_bytes(said.tokenizer)
            return {**save_net(net, folder), **said.to_dict()}

        write_folder(path, fill, f"a folder, or as one of {', '.join(SUFFIXES)}")
        return
    if exists(f"{stem}.prototxt") and not exists(f"{stem}{ModelInputs.SUFFIX}"):
        raise FileError(
            f"{stem}.prototxt",
            "is no saved model's and would be overwritten: give another name, or a folder's",
        )
    with output_file(os.fspath(path)) as file:
        write_model(file, _tested_model(net))
    with output_file(f"{stem}.prototxt") as file:
        write_text(file, net.tested.described)
    with output_file(f"{stem}{ModelInputs.SUFFIX}") as file:
        file.write_text(said.to_json(), encoding="utf-8")
    if said.tokenizer is not None:
        with output_file(f"{stem}.{TOKENIZER}") as file:
            file.write_bytes(said.tokenizer)


def write_folder(path: StrPath, fill: Callable[[Path], dict[str, Any]], kinds: str) -> None:
    """Write what ``fill`` puts into a folder, then model.json; ``kinds`` names other forms."""
    where = os.fspath(path).rstrip("/")
    if Path(where).suffix or not where:
        raise FileError(path, f"a model is saved as {kinds}; a folder's name has no suffix")
    with scratch_folder("model") as staged:
        more = fill(Path(staged))
        files = file_sums(Path(staged))
        for name in files:
            with output_file(f"{where}/{name}") as file:
                shutil.copyfile(Path(staged, name), file)
    with output_file(f"{where}/{ModelInputs.FOLDER}") as file:
        file.write_text(json.dumps({**more, FILES: files}, indent=1), encoding="utf-8")


def save_net(net: Net, folder: Path) -> dict[str, Any]:
    """Write the net that predicts and its weights; returns what the files do not hold."""
    whole = portable_net(net.tested.described)
    (folder / NET).write_text(whole.text, encoding="utf-8")
    for name, data in whole.files.items():
        (folder / name).write_bytes(data)
    weights = net.get_weights()
    if weights.flat.size:
        weights.save(folder / WEIGHTS)
    return {
        "data": sorted(whole.files),
        "precision": net.precision,
        "preprocessing": as_json(net.preprocessing),
    }


def _tested_model(net: Net) -> Model:
    tested = net.tested
    params = tested.net.params
    arrays: list[list[Any]] = [
        [np.asarray(blob.data) for blob in params.get(layer.name, ())]
        for layer in tested.described.layer
    ]
    return Model(in_int8(tested.described, tested.net, arrays), arrays)


# -- reading -------------------------------------------------------------------------------------


def read_folder(folder: Path) -> dict[str, Any]:
    """Return what model.json says; FileError where a file is another one than was saved."""
    metadata = parse_metadata(folder / ModelInputs.FOLDER, str(folder))
    check_files(folder, metadata)
    return metadata


def parse_metadata(file: Path, name: str) -> dict[str, Any]:
    try:
        metadata = json.loads(read_file(file, _LARGEST))
    except (FileError, ValueError, RecursionError) as error:
        raise FileError(name, f"is no saved model: {error}") from error
    if not isinstance(metadata, dict) or not has_sound_names(metadata.get(FILES)):
        raise FileError(name, "is no saved model: its model.json names no files")
    return metadata


@contextmanager
def complete(folder: StrPath) -> Iterator[None]:
    """Turn what odd metadata bring about into a FileError."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, SparkNetError):
            raise
        raise FileError(folder, f"is no saved model: {error!r}") from error


def load_net(
    folder: Path, metadata: Mapping[str, Any], trusted: bool | None, **keywords: Any
) -> Net:
    """Return the net that `save_net` wrote; ``keywords`` are `Net`'s and win."""
    saved = {
        "precision": metadata["precision"],
        "preprocessing": of_json(metadata["preprocessing"]),
    }
    net = Net(
        folder_net(folder, metadata, bool(trusted)),
        folder / WEIGHTS if (folder / WEIGHTS).exists() else None,
        **saved | {name: value for name, value in keywords.items() if value is not None},
    )
    _ = net.net  # reads the files, which go
    net.tested.knows_pictures = True
    return net


def folder_net(folder: Path, metadata: Mapping[str, Any], trusted: bool) -> NetParameter:
    """Return the description of a folder's net; untrusted, it reads its own files alone."""
    text, own = unpacked(folder, NET, metadata["data"])
    net = parse_net(text)
    if not trusted:
        distrust(net, own)
    return net


def unpacked(folder: Path, name: str, data: Any) -> tuple[str, set[str]]:
    """Return a prototxt with the paths of the files that it names, and these paths."""
    if not isinstance(data, list) or not all(_OWN.fullmatch(file) for file in data):
        raise ValueError(f"the net's files are {data!r}")
    parent = process_folder()
    files = {file: (folder / file).read_bytes() for file in data}
    text = Portable((folder / name).read_text(encoding="utf-8"), files).unpacked(parent)
    return text, {str(parent / file) for file in files}


def distrust(net: NetParameter, own: Collection[str]) -> None:
    """Let a net read nothing but its own files, and neither write nor import anything."""
    mark(net, False)
    for layer in net.layer:
        kind = LAYERS.get(layer.type)
        if kind is InfogainLoss and layer.infogain_loss_param.source in own:
            layer.ClearField("untrusted")
        elif (
            kind is not None
            and issubclass(kind, SourceLayer)
            and kind.field is not None
            and layer.transform_param.mean_file in own
        ):
            options = getattr(layer, kind.field)
            if "source" in options.DESCRIPTOR.fields_by_name:
                options.ClearField("source")
            layer.ClearField("untrusted")


def distrust_solver(solver: caffe_pb2.SolverParameter, own: Collection[str] = ()) -> None:
    """Let a solver read no net, and its nets nothing but their own files."""
    check_solver_files(solver, NET_FILES)
    for net in (solver.net_param, solver.train_net_param, *solver.test_net_param):
        distrust(net, own)


def as_json(how: Preprocessing | None) -> Any:
    return None if how is None else json.loads(how.to_json())


def of_json(said: Any) -> Preprocessing | None:
    return None if said is None else Preprocessing.from_json(json.dumps(said))


def file_sums(folder: Path) -> dict[str, Any]:
    """Return what metadata say of the files of a folder."""
    return {
        file.name: {"bytes": file.stat().st_size, "blake2b": check_sum(file)}
        for file in sorted(folder.iterdir())
    }


def has_sound_names(files: Any) -> bool:
    """Return whether these can be the files of a stage."""
    return isinstance(files, dict) and all(_NAME.fullmatch(name) for name in files)


def check_files(folder: Path, metadata: Mapping[str, Any]) -> None:
    """FileError where a file of a stage is missing, or is another one than was saved."""
    files = metadata.get(FILES)
    if not has_sound_names(files):
        raise FileError(folder, "is no saved stage: its files have odd names")
    assert isinstance(files, dict)
    for name, facts in files.items():
        check_file(folder / name, str(folder / name), facts)


def check_file(file: Path, name: str, said: Any) -> None:
    """FileError where a file has not the size or the check sum that was saved with it."""
    try:
        size, sum = said["bytes"], said["blake2b"]
        actual = file.stat().st_size
    except (KeyError, TypeError) as error:
        raise FileError(name, "is of a stage whose metadata say nothing of it") from error
    except OSError as error:
        raise FileError(name, error.strerror or str(error)) from error
    if actual != size:
        raise FileError(name, f"has {actual} bytes; {size} were saved")
    if check_sum(file) != sum:
        raise FileError(name, "is damaged: it has another check sum than when it was saved")


def check_sum(file: Path) -> str:
    sum = blake2b(digest_size=32)
    with open_file(file) as stream:
        while data := stream.read(_AT_ONCE):
            sum.update(data)
    return sum.hexdigest()
