"""The model zoo: well-known nets, written in the DSL.

Each ``sparknet/models/<name>.py`` has two functions, ``net()`` and ``solver()``; the first line of
its docstring says what the model is, and ``PREPROCESSING``, where it has one, what happens to
pictures whose values run from 0 to 255.  A model that is made of another's parts stands in its
file, with its name in these three (`_HOMES`).  The files made from it lie where Caffe has them, in
``models/<name>/`` of the source tree.

>>> from sparknet import models
>>> models.net("lenet").graph().param_count
431080
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet import renamed
from sparknet.dsl import NetParams, SolverParams
from sparknet.errors import SpecError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.models.downloads import weights
from sparknet.models.lstm import ConvLSTMState, conv_lstm
from sparknet.models.ssd import Map, ssd
from sparknet.proto.suggest import did_you_mean

__all__ = [
    "NAMES",
    "ConvLSTMState",
    "Map",
    "about",
    "conv_lstm",
    "files",
    "net",
    "preprocessing",
    "solver",
    "ssd",
    "weights",
]

if not TYPE_CHECKING:
    __getattr__ = renamed.names(__name__, State=ConvLSTMState)

NAMES = (
    "alexnet",
    "caffenet",
    "cifar10_full",
    "cifar10_quick",
    "fcn",
    "googlenet",
    "lenet",
    "lstm_text",
    "mlp_tabular",
    "mobilenet",
    "mobilenet_ssd",
    "resnet50",
    "squeezenet",
    "ssd300_vgg16",
    "vgg16",
)
_HOMES = {
    "caffenet": "alexnet",
    "cifar10_full": "cifar10",
    "cifar10_quick": "cifar10",
    "fcn": "vgg16",
    "lstm_text": "lstm",
    "mobilenet_ssd": "mobilenet",
    "ssd300_vgg16": "ssd",
}


def net(name: str, *batches: int) -> NetParams:
    """Return a model's net, with its original batch sizes or these for training and test."""
    net: NetParams = _part(name, "net", name)(*batches)
    return net


def solver(name: str) -> SolverParams:
    """Return a model's solver settings, with its net inside."""
    params: SolverParams = _part(name, "solver", f"{name}_solver")()
    return params


def preprocessing(name: str) -> Preprocessing | None:
    """Return what a model wants done to pictures; None if it has a mean of its data."""
    settings: Preprocessing | None = _part(name, "PREPROCESSING", f"{name.upper()}_PREPROCESSING")
    return settings


def about(name: str) -> str:
    """Return what a model is, in one line."""
    described = _part(name, "__doc__", name)
    text: str = described if isinstance(described, str) else described.__doc__
    return text.partition("\n")[0]


def files(name: str, folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return a model's files and their text; its solver names paths in `folder`."""
    place = Path(folder)
    settings = solver(name).but(
        net_param=None,
        net=(place / "net.prototxt").as_posix(),
        snapshot_prefix=(place / name).as_posix(),
    )
    how = preprocessing(name)
    described = {} if how is None else {"net.sparknet.json": _described(how)}
    return {
        "net.prototxt": net(name).to_prototxt(),
        "solver.prototxt": settings.to_prototxt(),
        "README.md": _readme(name).read_text(encoding="utf-8"),
        **described,
    }


def _readme(name: str) -> Path:
    """Find the files: beside the modules in a wheel, else at the source tree's top."""
    package = Path(__file__).parent
    installed = package / name / "README.md"
    return installed if installed.is_file() else package.parents[1] / "models" / name / "README.md"


def _described(how: Preprocessing) -> str:
    sidecar = {"columns": {}, "preprocessing": json.loads(how.to_json())}
    return json.dumps(sidecar, indent=1) + "\n"


def _part(name: str, own: str, shared: str) -> Any:
    """Return what a model's file has under a name, or under another where it has several models."""
    if name not in NAMES:
        raise SpecError(f"there is no model '{name}'{did_you_mean(name, NAMES)}")
    module = import_module(f"sparknet.models.{_HOMES.get(name, name)}")
    return getattr(module, shared if name in _HOMES else own, None)
