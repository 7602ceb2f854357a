"""Models in MLflow's format: a folder of files that `sparknet.load` reads, and a pyfunc."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import sparknet
from sparknet.errors import FileError, SettingError, extra
from sparknet.graph.plots import png
from sparknet.net import Net
from sparknet.net.scratch import scratch_folder
from sparknet.predict.loaded import LoadedModel, load
from sparknet.predict.module_predictor import ModulePredictor
from sparknet.predict.request import batch_for
from sparknet.predict.stage import stage_metadata
from sparknet.report.joined_calls import JoinedCalls
from sparknet.spark.predict.model import SparkModel
from sparknet.torch.modules.saved_module import beside, read_description

if TYPE_CHECKING:
    import pandas as pd

    from sparknet.net import Entry
    from sparknet.predict.loaded import LoadedModel


def example_of(loaded: LoadedModel) -> pd.DataFrame:
    """Return a data frame of one row, with a column for each of the model's inputs."""
    import pandas as pd

    mapping = loaded.mapping()
    model: Any = loaded.model
    if isinstance(model, ModulePredictor):
        records = model.records
        return pd.DataFrame({column: [_row(records[name])] for name, column in mapping.items()})
    entries = {entry.name: entry for entry in model.net.tested.entries}
    texts = model.tokens is not None
    return pd.DataFrame(
        {column: [_value(entries[name], texts)] for name, column in mapping.items()}
    )


def _row(records: Any) -> Any:
    """Return a zero of the type of an argument's rows."""
    zero = np.zeros_like(records[0])
    return zero if zero.ndim else zero.item()


def _value(entry: Entry, texts: bool) -> Any:
    if texts:
        return "a text"
    if entry.pictures is not None:
        sides = zip(entry.stored[-2:], entry.record[-2:], strict=True)
        height, width = (stored or measured for stored, measured in sides)
        return png(np.zeros((height, width, 3), np.uint8))  # a black one
    if not entry.record:
        return 0.0
    return np.zeros(entry.record)


FLAVOR_NAME = "sparknet"
_MODULE = "sparknet.mlflow"
_FILE = "net.caffemodel"
_MODULE_FILE = "module.safetensors"
_STAGE = "stage"


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | str | None = None,
    extra_pip_requirements: Sequence[str] | str | None = None,
    metadata: Mapping[str, Any] | None = None,
    mlflow_model: Any = None,
    **more: Any,
) -> None:
    """Write a model in MLflow's format into a new folder.

    ``model`` is a `SparkModel`, a `NetModel` or `NetFeaturizer`, a `Net`, what a
    training returned, or a path that `sparknet.load` takes.  Unless one of them is given, the
    example is a row of zeros, an empty picture or a text, as the net's inputs have it, and the
    signature that of the example and of its results (``signature=False``: none); the requirements
    name sparknet with the extras that the model needs.  ``more`` is handed to
    `mlflow.pyfunc.save_model`.
    """
    with extra("mlflow", "mlflow", "MLflow's format"):
        import mlflow
        from mlflow.models import Model, infer_signature
    if Path(path).is_file():
        raise FileError(path, "is a file: MLflow writes a model into a new folder")
    if Path(path).exists() and any(Path(path).iterdir()):
        raise FileError(
            path, "is a folder with files already: MLflow writes a model into a new one"
        )
    with scratch_folder("mlflow") as scratch:
        files = Path(scratch, FLAVOR_NAME)
        files.mkdir()
        _write(model, files)
        loaded = _load(files)
        if input_example is None and signature is None:
            input_example = example_of(loaded)
        if signature is None:
            signature = infer_signature(input_example, loaded.predict(input_example))
        described = Model() if mlflow_model is None else mlflow_model
        described.add_flavor(
            FLAVOR_NAME, sparknet_version=sparknet.__version__, data=f"data/{FLAVOR_NAME}"
        )
        if pip_requirements is None and "conda_env" not in more:
            pip_requirements = get_default_pip_requirements(loaded)
        mlflow.pyfunc.save_model(
            os.fspath(path),
            loader_module=_MODULE,
            data_path=str(files),
            mlflow_model=described,
            signature=signature or None,
            input_example=input_example if signature else None,
            pip_requirements=pip_requirements,
            extra_pip_requirements=extra_pip_requirements,
            metadata=None if metadata is None else dict(metadata),
            **more,
        )


def log_model(model: Any, name: str = "model", **more: Any) -> Any:
    """Log a model as an artifact of the active run, or of a new one; returns MLflow's ModelInfo.

    ``more`` are the keywords of `save_model`, and of `mlflow.models.Model.log`, such as
    ``registered_model_name``.
    """
    with extra("mlflow", "mlflow", "MLflow's format"):
        from mlflow.models import Model
    return Model.log(
        artifact_path=None, name=name, flavor=import_module(_MODULE), model=model, **more
    )


def load_model(model_uri: str, dst_path: str | None = None) -> LoadedModel:
    """Return the model of an URI (``models:/…``, ``runs:/…``, a path), as `sparknet.load` makes
    it.
    """
    with extra("mlflow", "mlflow", "MLflow's format"):
        from mlflow.artifacts import download_artifacts
        from mlflow.models import Model
    folder = Path(download_artifacts(artifact_uri=model_uri, dst_path=dst_path))
    flavors = Model.load(str(folder)).flavors
    if FLAVOR_NAME not in flavors:
        raise FileError(folder, f"has the flavors {', '.join(flavors)}, and not {FLAVOR_NAME}")
    return _load(folder / flavors[FLAVOR_NAME]["data"])


def get_default_pip_requirements(model: LoadedModel | None = None) -> list[str]:
    """Return what a model needs where it is served."""
    extras = ["parquet"]
    if model is not None and isinstance(model.model, ModulePredictor):
        extras += ["torch"]
    elif model is not None:
        predictor: Any = model.model
        entries = predictor.net.tested.entries
        extras += ["images"] if any(entry.pictures is not None for entry in entries) else []
        extras += ["text"] if model.model.tokens is not None else []
    return [f"sparknet[{','.join(extras)}]=={sparknet.__version__}", "pandas"]


class _PyFunc:
    """What MLflow calls."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        self._joined = JoinedCalls(model.predict, _shared_rows(model))

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        if isinstance(model_input, dict) and _are_rows(model_input.values()):
            return self._joined(model_input)
        return self._model.predict(model_input)

    def get_raw_model(self) -> LoadedModel:
        return self._model


def _shared_rows(model: LoadedModel) -> int:
    """Return how many rows of several requests may be one batch; 1 if they affect each other."""
    predictor: Any = model.model
    if model.is_stage or isinstance(predictor, ModulePredictor) or predictor.tokens is not None:
        return 1
    tested = predictor.net.tested
    rows = batch_for(tested, predictor.blobs(None))
    return 1 if rows == tested.batch else rows


def _are_rows(columns: Collection[Any]) -> bool:
    """Return whether columns are arrays of as many numbers, as a signature of tensors has them."""
    are_arrays = all(isinstance(one, np.ndarray) and one.ndim for one in columns)
    return are_arrays and len({len(one) for one in columns}) == 1


def _load_pyfunc(path: str) -> _PyFunc:
    return _PyFunc(_load(Path(path)))


# -- files -------------------------------------------------------------------------------------


def _write(model: Any, folder: Path) -> None:
    """Write the files of a model, as `_read` expects them."""
    if isinstance(model, (str, os.PathLike)) and Path(model).is_dir():
        load(model)  # refuses what is no stage
        shutil.copytree(model, folder / _STAGE)
        return
    if hasattr(model, "save_here"):
        model.save_here(folder / _STAGE)
        return
    if hasattr(model, "state_dict"):
        raise SettingError(
            "a module of PyTorch does not say what it is given: log what a training returned, or "
            "SparkModel(module, records={'x': …})"
        )
    if isinstance(model, LoadedModel) and model.is_stage:
        raise SettingError(f"{model!r} was loaded from a stage: give MLflow the stage's folder")
    if isinstance(model, LoadedModel):
        model = model.model
    if getattr(model, "module", None) is not None:
        _write_module(model, folder / _MODULE_FILE)
        return
    if hasattr(model, "outcome"):  # what a training returned
        model = model.model if hasattr(model, "model") else SparkModel(model.net)
    elif not isinstance(model, SparkModel):
        _check(model)
        model = load(model).model
    model.save(folder / _FILE)


def _write_module(model: Any, file: Path) -> None:
    """Write the files of a module, or of a trained one."""
    model.save(file)
    if read_description(Path(beside(file)), str(file)).made_by is None:
        kind = type(model.module).__name__
        raise SettingError(
            f"nothing names what makes module '{kind}' as it is, and MLflow loads a model by that "
            "name: give module= a class without arguments, a function or a functools.partial of "
            "one, from a file that Python can import (code_paths=[…] brings it along); or log it "
            "by mlflow.pytorch.log_model(trained.module), which pickles it"
        )


def _check(model: Any) -> None:
    if not isinstance(model, (str, os.PathLike, Net)):
        raise SettingError(
            f"MLflow's flavour takes a SparkModel, a stage, a Net, a training's result or a path, "
            f"not {type(model).__name__}"
        )


def _load(folder: Path) -> LoadedModel:
    if (folder / _MODULE_FILE).is_file():
        # MLflow imports what a model's own MLmodel names, so that it trusts a model anyway.
        return load(folder / _MODULE_FILE, trusted=True)
    if (folder / _STAGE).is_dir():
        return load(folder / _STAGE, trusted="module" in stage_metadata(folder / _STAGE))
    return load(folder / _FILE)
