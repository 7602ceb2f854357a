"""training_net: the net that is trained, and its solver's settings for the training."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sparknet.caffe.solvers import SOLVERS
from sparknet.errors import SettingError, SpecError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.backend import EMBEDDED, Pycaffe, find_backend, import_backend
from sparknet.net.description import solver_of
from sparknet.net.recipe import PLAIN, Recipe
from sparknet.proto import caffe_pb2
from sparknet.training.strategies import Strategy
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from sparknet.caffe.precision import Precision

StrPath = str | os.PathLike[str]

_STATE = ("snapshot", "restore")
"""What reads and writes the solverstate: the histories and the iteration."""


def training_net(
    solver: Any,
    weights: StrPath | WeightCollection | None,
    seed: int | None,
    precision: Precision,
    preprocessing: Preprocessing | None = None,
    backend: Any = EMBEDDED,
    dialect: str | None = None,
    recipe: Recipe = PLAIN,
    given_seed: int | None = None,
) -> Net:
    """Return the net of a solver; if ``solver`` is a Net, a copy of it.

    ``given_seed`` is that of a solver without random_seed.
    """
    solver, weights = recipe.applied(solver, weights)
    if not isinstance(solver, Net):
        described = None if seed is not None or given_seed is None else solver_of(solver)
        if described is not None and described.random_seed < 0:
            seed = given_seed
        with recipe.expected():
            net = Net(
                solver,
                weights,
                seed=seed,
                precision=precision,
                preprocessing=preprocessing,
                backend=backend,
                dialect=dialect,
            )
        settings(net)
        if recipe.head is not None:  # of other classes
            net.labels = ()
        return net
    settings(solver)
    if weights is not None:
        raise SettingError("this Net has weights already: give it those to begin with")
    if preprocessing not in (None, solver.preprocessing):
        raise SettingError(f"this Net is made already: give {preprocessing!r} to Net itself")
    if dialect is not None:
        raise SettingError(f"this Net is made already: give dialect={dialect!r} to Net itself")
    if precision not in ("float32", solver.precision):
        raise SettingError(f"this Net computes in {solver.precision}: give precision to Net itself")
    if backend != EMBEDDED and find_backend(backend).name != solver.backend.name:
        mine = solver.backend.name
        raise SettingError(f"this Net has the backend '{mine}': give backend to Net itself")
    return solver.copy()


def net_of(
    given: Any, solver: Any, weights: StrPath | WeightCollection | None, seed: int | None
) -> Net:
    """Return the net of a solver by the settings of a training; ``seed`` is a resumed run's."""
    return training_net(
        solver,
        weights,
        seed,
        given.precision,
        Preprocessing.of(given),
        getattr(given, "backend", EMBEDDED),
        given.dialect,
        Recipe.of(given),
        given.seed,
    )


def settings(net: Net) -> caffe_pb2.SolverParameter:
    if net.settings is None:
        raise SettingError("training needs a solver: a net alone does not say how it is trained")
    return net.settings


def check_backend(net: Net, strategy: Strategy, keeps: bool) -> None:
    """Refuse a backend that cannot train so; ``keeps`` says whether there are snapshots."""
    name = net.backend.name
    if net.backend.is_embedded:
        return
    if not isinstance(net.backend, Pycaffe) or _imported_as(name) is not net.backend.module:
        raise SettingError(
            f"backend '{name}' is not what the workers import under this name: "
            "put it into a module that they can import"
        )
    needed: dict[str, Sequence[str]] = {"training": ("apply_update", "iter")}
    if keeps:
        needed["the solver's histories in snapshots"] = _STATE
    if strategy.needs_state:
        needed[f"the solver's histories by strategy '{strategy.name}'"] = _STATE
    for what, names in needed.items():
        for one in names:
            if not hasattr(net.solver, one):
                raise SettingError(f"backend '{name}' has no Solver.{one}, needed for {what}")
    kind = settings(net).type
    if kind not in SOLVERS:
        raise SettingError(f"backend '{name}': nothing is known of the histories of {kind}")


def _imported_as(name: str) -> Any:
    try:
        return import_backend(name)
    except SpecError:
        return None


def seed_of(net: Net, resumed: int | None, given: int | None) -> int:
    """Return the seed of random numbers: the resumed run's, the solver's, the user's, or a random
    one.
    """
    if resumed is not None:
        return resumed
    seed = int(settings(net).random_seed)
    if seed >= 0:
        return seed
    return secrets.randbits(31) if given is None else given
