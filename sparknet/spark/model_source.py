"""What a `SparkModel` is made from: files wherever Spark can read them, and a stage's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparknet.errors import FileError, SpecError, shown
from sparknet.net import Net
from sparknet.net.model_folder import (
    FILES,
    TOKENIZER,
    complete,
    load_net,
    parse_metadata,
    read_folder,
)
from sparknet.net.model_inputs import ModelInputs
from sparknet.net.scratch import scratch_folder
from sparknet.onnx import open_model
from sparknet.onnx.inputs import refuse_axes
from sparknet.predict.files import exists, fetched, local_path
from sparknet.predict.texts import TokenizerFile
from sparknet.weights.files import is_model_folder

StrPath = str | os.PathLike[str]
Opened = tuple[Net, ModelInputs, TokenizerFile | None]


def open_source(source: Any, weights: Any, random: bool, **keywords: Any) -> Opened:
    """The net, what its files say of it, and its tokenizer; ``keywords`` are `Net`'s.

    SpecError for a net with layers that learn and without weights, unless ``random``.
    """
    with model_folder(source) as folder:
        if folder is not None:
            return _of_folder(folder, os.fspath(source), weights, keywords)
    said, tokens = _beside(source if weights is None else weights)
    if said is not None:
        keywords["preprocessing"] = keywords["preprocessing"] or said.preprocessing
    net = _net(source, weights, **keywords)
    if said is not None:
        net.tested.knows_pictures = True
    if net.begins_at_random and not random and net.tested.net.params:
        raise SpecError(
            f"net '{shown(net.described.name)}' has no weights, and random ones predict nothing: "
            "give weights=FILE, or random=True if random ones are meant"
        )
    return net, said or ModelInputs(), tokens


@contextmanager
def model_folder(source: Any) -> Iterator[Path | None]:
    """A model's folder on this machine, or a copy of one elsewhere; None for other sources."""
    here = local_path(source) if isinstance(source, (str, os.PathLike)) else None
    if here is not None or not isinstance(source, (str, os.PathLike)):
        yield Path(here) if here is not None and is_model_folder(here) else None
        return
    where = os.fspath(source).rstrip("/")
    if "{" in where or Path(where).suffix or not exists(f"{where}/{ModelInputs.FOLDER}"):
        yield None
        return
    with scratch_folder("fetched") as copy:
        folder = Path(copy)
        with fetched(f"{where}/{ModelInputs.FOLDER}") as file:
            (folder / ModelInputs.FOLDER).write_bytes(Path(file).read_bytes())
        for name in parse_metadata(folder / ModelInputs.FOLDER, where)[FILES]:
            with fetched(f"{where}/{name}") as file:
                Path(file).rename(folder / name)
        yield folder


def _of_folder(folder: Path, name: str, weights: Any, keywords: dict[str, Any]) -> Opened:
    if weights is not None:
        raise SpecError(f"{name} is a saved model, which has its weights already")
    refuse_axes(name, keywords.pop("shapes"), keywords.pop("batch_axis"))
    metadata = read_folder(folder)
    if "module" in metadata:
        raise FileError(name, "is a module of PyTorch: sparknet.load and ModuleModel.load read it")
    if keywords["precision"] == "float32":
        del keywords["precision"]
    with complete(name):
        net = load_net(folder, metadata, keywords.pop("trusted"), **keywords)
    has_tokens = (folder / TOKENIZER).is_file()
    tokens = TokenizerFile.read(folder / TOKENIZER) if has_tokens else None
    return net, ModelInputs.of(metadata, name), tokens


def _beside(source: Any) -> tuple[ModelInputs | None, TokenizerFile | None]:
    """What lies next to a caffemodel or a .h5; nothing next to other files."""
    stem = next(filter(None, (_stem(source, suffix) for suffix in (".caffemodel", ".h5"))), None)
    if stem is None or not exists(path := f"{stem}{ModelInputs.SUFFIX}"):
        return None, None
    with fetched(path) as file:
        said = ModelInputs.read(Path(file), path)
    tokenizer = f"{stem}.{TOKENIZER}"
    return said, TokenizerFile.read(tokenizer) if exists(tokenizer) else None


def _net(source: Any, weights: Any, **keywords: Any) -> Net:
    """A net from files that only Spark may be able to read.

    A caffemodel contains its own description; next to one in HDF5, which does not, lies the net.
    """
    if weights is None:
        if (name := _stem(source, ".h5")) is not None:
            if not exists(f"{name}.prototxt"):
                raise FileError(
                    source, f"holds weights without their net: {name}.prototxt is missing"
                )
            source, weights = f"{name}.prototxt", source
        elif _stem(source, ".caffemodel") is not None:
            weights = source
    with fetched(source) as description, fetched(weights) as given:
        net = open_model(given).net if source is weights is not None else description
        made = Net(net, given, **keywords)
        if description is not source or given is not weights:
            _ = made.net  # reads the copied files
    return made


def _stem(path: Any, suffix: str) -> str | None:
    """A path or URL without ``suffix``; None if it has another suffix."""
    if not isinstance(path, (str, os.PathLike)):
        return None
    text = os.fspath(path)
    return text.removesuffix(suffix) if Path(text).suffix == suffix else None
