"""tuned: a solver with other settings, or another batch size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparknet.errors import SettingError
from sparknet.graph.batch import set_batch
from sparknet.net.description import NetMessage, SolverMessage, solver_of
from sparknet.net.net import Net
from sparknet.proto import read_net


def tuned(solver: Any, settings: Mapping[str, Any], batch: int | None = None) -> Any:
    """The solver (whatever `Net` takes) with other ``settings``, by Caffe's names.

    A Net becomes another one, with the same weights.
    """
    if not settings and batch is None:
        return solver
    given = solver.settings if isinstance(solver, Net) else solver_of(solver)
    if given is None:
        raise SettingError("training needs a solver: a net alone does not say how it is trained")
    changed = SolverMessage()
    changed.CopyFrom(given)
    for name, value in settings.items():
        _change(changed, name, value)
    if batch is not None:
        _set_batches(changed, batch)
    if isinstance(solver, Net):
        return Net(
            changed,
            solver.get_weights(),
            precision=solver.precision,
            device=solver.device,
            preprocessing=solver.preprocessing,
        )
    return changed


def _change(solver: SolverMessage, name: str, value: Any) -> None:
    try:
        solver.ClearField(name)
        if isinstance(value, (list, tuple)):
            getattr(solver, name).extend(value)
        else:
            setattr(solver, name, value)
    except (TypeError, ValueError, AttributeError) as error:
        raise SettingError(f"the solver's {name} cannot be {value!r}: {error}") from error


def _set_batches(solver: SolverMessage, batch: int) -> None:
    if type(batch) is not int or batch < 1:
        raise SettingError(f"a batch size is a whole number, at least 1, not {batch!r}")
    for one, whole in (("net", "net_param"), ("train_net", "train_net_param")):
        if solver.HasField(one):
            getattr(solver, whole).CopyFrom(read_net(getattr(solver, one)))
            solver.ClearField(one)
    solver.test_net_param.extend(read_net(path) for path in solver.test_net)
    del solver.test_net[:]
    nets: list[NetMessage] = [*solver.test_net_param]
    for field in ("net_param", "train_net_param"):
        if solver.HasField(field):
            nets.append(getattr(solver, field))
    for net in nets:
        set_batch(net, batch)
