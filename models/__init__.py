"""Well-known nets in the DSL; ``python -m models`` writes their prototxt files.

Each ``models/<name>/net.py`` has two functions: ``net()`` and ``solver()``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from sparknet.dsl import NetParams, SolverParams

ROOT = Path(__file__).parent

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
    "resnet50",
    "squeezenet",
    "vgg16",
)


def net(name: str) -> NetParams:
    """A model's net at its original batch sizes."""
    made: NetParams = import_module(f"models.{name}.net").net()
    return made


def solver(name: str) -> SolverParams:
    """A model's solver settings."""
    made: SolverParams = import_module(f"models.{name}.net").solver()
    return made


def files(name: str) -> dict[Path, str]:
    """The files that a model generates, and their text."""
    folder = ROOT / name
    return {
        folder / "net.prototxt": net(name).to_prototxt(),
        folder / "solver.prototxt": solver(name).to_prototxt(),
    }
