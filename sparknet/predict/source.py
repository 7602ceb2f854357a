"""Sources of models: nets, modules, files wherever Spark can read them, and saved folders."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparknet.errors import FileError, SparkError, SpecError, clean
from sparknet.net import Net
from sparknet.net.files import exists, fetched, local_path
from sparknet.net.heads import Kind
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
from sparknet.onnx.inputs import refuse_axes
from sparknet.predict.input_columns import column_map
from sparknet.predict.module_predictor import ModulePredictor
from sparknet.predict.net_predictor import NetPredictor
from sparknet.predict.predictor import Predictor
from sparknet.predict.texts import TokenizerFile
from sparknet.torch.modules.saved_module import MODULE, SavedModule, beside, read_description
from sparknet.weights.files import is_model_folder
from sparknet.weights.safetensors import is_safetensors

StrPath = str | os.PathLike[str]


def predictor_of(
    source: Any,
    weights: Any = None,
    *,
    random: bool = False,
    trusted: bool | None = None,
    module: Any = None,
    columns: dict[str, str] | None = None,
    shapes: Any = None,
    records: Mapping[str, Any] | None = None,
    kind: Kind | None = None,
    **settings: Any,
) -> Predictor:
    """Return the model of a net, a module of PyTorch, or files; ``settings`` are `Net`'s."""
    net_settings = {
        name: value for name, value in settings.items() if value not in (None, "float32")
    }
    net_settings |= {} if weights is None else {"weights": weights}
    is_module = looks_like_module(source)
    if is_module or (weights is None and _is_saved_module(source)):
        for name in net_settings:
            raise SparkError(f"a module has no {name}: {clean(str(source))} is a module of PyTorch")
        if is_module:
            return ModulePredictor(source, columns, shapes, records, kind)
        model = load_module(source, module, bool(trusted))
        model.columns |= column_map(columns)
        return model
    for name, value in (("module", module), ("records", records), ("kind", kind)):
        if value is not None:
            raise SparkError(f"{name} is of a module of PyTorch, and {clean(str(source))} is a net")
    defaults = {"preprocessing": None, "precision": "float32", "dialect": None, "batch_axis": None}
    settings = {**defaults, **settings}
    return _open_net(
        *(source, weights, random), columns, trusted=trusted, shapes=shapes, **settings
    )


def with_texts(
    predictor: Predictor, tokenizer: Any, pooling: str | None, pooled: str | None
) -> Predictor:
    """Let a net take texts by a tokenizer's file, and make one vector of each text."""
    if tokenizer is not None:
        predictor.tokens = TokenizerFile.read(tokenizer)
    if pooling is None and pooled is not None:
        raise SpecError(f"pooled={pooled!r} is for pooling, which is not given")
    if pooling is not None:
        if not isinstance(predictor, NetPredictor):
            raise SpecError("pooling is of a net that takes texts")
        predictor.pool(pooling, pooled)
    return predictor


def looks_like_module(source: Any) -> bool:
    """Return whether this is a module of PyTorch, or what makes one."""
    return hasattr(source, "state_dict") or (
        callable(source) and not isinstance(source, (Net, Predictor))
    )


def _is_saved_module(source: Any) -> bool:
    """Return whether a path is that of a module's files."""
    if not isinstance(source, (str, os.PathLike)):
        return False
    if is_safetensors(source):
        return True
    with model_folder(source) as folder:
        return folder is not None and "module" in read_folder(folder)


def load_module(path: StrPath, module: Any = None, trusted: bool = False) -> ModulePredictor:
    """Return the module that was saved.

    ``module`` is a module like the saved one, or a function that makes one.  Unless it is given,
    the file's own class or function is called: one that this program has imported, or with
    ``trusted`` any that Python can import.
    """
    where = os.fspath(path)
    with model_folder(path) as folder:
        if folder is not None:
            metadata = read_folder(folder)
            if "module" not in metadata:
                raise FileError(where, "is a net: read it by SparkModel or sparknet.load")
            saved = SavedModule.read(metadata["module"], where)
            return ModulePredictor.read(folder / MODULE, where, saved, module, trusted)
    facts_path = beside(path)
    with fetched(facts_path) as file:
        saved = read_description(Path(file), facts_path)
    with fetched(path) as file:
        return ModulePredictor.read(Path(file), where, saved, module, trusted)


def _open_net(
    source: Any, weights: Any, random: bool, columns: Any, **keywords: Any
) -> NetPredictor:
    """Return the net of a source, with what its files say of it.

    SpecError for a net with layers that learn and without weights, unless ``random``.
    """
    if isinstance(source, Net):
        _refuse_settings(source, weights, keywords)
        return NetPredictor(source, column_map(columns))
    with model_folder(source) as folder:
        if folder is not None:
            predictor = _of_folder(folder, os.fspath(source), weights, keywords)
            predictor.columns |= column_map(columns)
            return predictor
    model_inputs, tokens = _beside(source if weights is None else weights)
    if model_inputs is not None:
        keywords["preprocessing"] = keywords["preprocessing"] or model_inputs.preprocessing
    net = _net(source, weights, **keywords)
    if model_inputs is not None:
        net.tested.knows_pictures = True
    if net.begins_at_random and not random and net.tested.net.params:
        raise SpecError(
            f"net '{clean(net.described.name)}' has no weights, and random ones predict nothing: "
            "give weights=FILE, or random=True if random ones are meant"
        )
    model_inputs = model_inputs or ModelInputs()
    return NetPredictor(
        net,
        model_inputs.columns | column_map(columns),
        model_inputs.labels,
        tokens,
        model_inputs.features,
    )


def _refuse_settings(net: Net, weights: Any, keywords: Mapping[str, Any]) -> None:
    """SpecError for settings of a `Net` that is made already."""
    if weights is not None:
        raise SpecError("this Net has weights already: give weights with what it was made from")
    if keywords["precision"] not in ("float32", net.precision):
        setting = f"precision={keywords['precision']!r}"
        raise SpecError(f"this Net is made already: give {setting} to Net itself")
    if keywords["preprocessing"] not in (None, net.preprocessing):
        how = keywords["preprocessing"]
        raise SpecError(f"this Net is made already: give {how!r} to Net itself")
    if keywords["dialect"] is not None:
        setting = f"dialect={keywords['dialect']!r}"
        raise SpecError(f"this Net is made already: give {setting} to Net itself")
    refuse_axes("this Net is made already", keywords["shapes"], keywords["batch_axis"])


@contextmanager
def model_folder(source: Any) -> Iterator[Path | None]:
    """Yield a model's folder on this machine, or a copy of one elsewhere; else None."""
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


def _of_folder(folder: Path, name: str, weights: Any, keywords: dict[str, Any]) -> NetPredictor:
    if weights is not None:
        raise SpecError(f"{name} is a saved model, which has its weights already")
    refuse_axes(name, keywords.pop("shapes"), keywords.pop("batch_axis"))
    metadata = read_folder(folder)
    if keywords["precision"] == "float32":
        del keywords["precision"]
    with complete(name):
        net = load_net(folder, metadata, keywords.pop("trusted"), **keywords)
    has_tokens = (folder / TOKENIZER).is_file()
    tokens = TokenizerFile.read(folder / TOKENIZER) if has_tokens else None
    model_inputs = ModelInputs.of(metadata, name)
    return NetPredictor(
        net, model_inputs.columns, model_inputs.labels, tokens, model_inputs.features
    )


def _beside(source: Any) -> tuple[ModelInputs | None, TokenizerFile | None]:
    """Return what lies next to a caffemodel or a .h5; nothing next to other files."""
    stem = next(filter(None, (_stem(source, suffix) for suffix in (".caffemodel", ".h5"))), None)
    if stem is None or not exists(path := f"{stem}{ModelInputs.SUFFIX}"):
        return None, None
    with fetched(path) as file:
        model_inputs = ModelInputs.read(Path(file), path)
    tokenizer = f"{stem}.{TOKENIZER}"
    return model_inputs, TokenizerFile.read(tokenizer) if exists(tokenizer) else None


def _net(source: Any, weights: Any, **keywords: Any) -> Net:
    """Return a net from files that only Spark may be able to read.

    A caffemodel contains its own description; next to one in HDF5, which does not, lies the net.
    """
    if weights is None and (name := _stem(source, ".h5")) is not None:
        if not exists(f"{name}.prototxt"):
            raise FileError(source, f"holds weights without their net: {name}.prototxt is missing")
        source, weights = f"{name}.prototxt", source
    with fetched(source) as description, fetched(weights) as weights_file:
        opened_net = Net(description, weights_file, **keywords)
        if description is not source or weights_file is not weights:
            _ = opened_net.net  # reads the copied files
    return opened_net


def _stem(path: Any, suffix: str) -> str | None:
    """Return a path or URL without ``suffix``; None if it has another suffix."""
    if not isinstance(path, (str, os.PathLike)):
        return None
    text = os.fspath(path)
    return text.removesuffix(suffix) if Path(text).suffix == suffix else None
