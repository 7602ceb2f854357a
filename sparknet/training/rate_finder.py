"""find_lr: a short training whose learning rate rises until the loss does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from inspect import unwrap
from math import inf, log10
from typing import Any

import numpy as np

from sparknet.errors import Diverged, SettingError, SpecError
from sparknet.graph.curves import Curves, Panel, Series, svg
from sparknet.loaders.image_settings import ImageKeywords
from sparknet.net.recipe import Recipe
from sparknet.proto import caffe_pb2
from sparknet.proto.suggest import did_you_mean
from sparknet.training.local_training import train
from sparknet.training.observers import unheard
from sparknet.training.settings.training import ProcessSettings
from sparknet.training.strategies import Averaging
from sparknet.training.training_net import net_of
from sparknet.training.training_net import settings as solver_of

FEWEST = 10
"""Steps that a curve needs."""
_KEPT = 0.85
"""What the smoothed loss keeps of the one before."""
_RISEN = 3.0
"""The loss has risen for good where it is as many times the first one, or 1 if that is larger."""
_OWN = (
    "strategy",
    "epochs",
    "seconds",
    "snapshots",
    "snapshot_every",
    "validation",
    "validate_every",
    "patience",
    "on_event",
    "resume",
    "hosts",
    "min_hosts",
    "min_workers",
    "diverged",
    "lr_schedule",
)
"""Settings of `train` that have no meaning here."""
_OF_THE_NET = frozenset(
    {
        *("weights", "precision", "backend", "dialect"),
        *(field.name for field in fields(ImageKeywords)),
        *(field.name for field in fields(Recipe)),
    }
)
"""Settings that the net is made with, before it is trained."""
_RATES = (
    "warmup_iter",
    "warmup_start_lr",
    "rampup_interval",
    "rampup_lr",
    "min_lr",
    "stagelr",
    "stageiter",
    "stepvalue",
    "stepsize",
    "power",
)
"""What policies say, besides gamma."""


@dataclass(frozen=True)
class RateCurve:
    """The loss of each step, and the learning rate that the step took."""

    rates: tuple[float, ...]
    losses: tuple[float, ...]

    @property
    def smoothed(self) -> tuple[float, ...]:
        """The losses, each with those before it, which count less and less."""
        mean, losses = 0.0, []
        for step, loss in enumerate(self.losses, 1):
            mean = _KEPT * mean + (1 - _KEPT) * loss
            losses.append(mean / (1 - _KEPT**step))
        return tuple(losses)

    @property
    def suggestion(self) -> float | None:
        """The rate in the middle of the steepest fall; None where the loss never fell.

        The fall is the slope of a line through the smoothed losses of an eighth of the steps.
        """
        at, curve = np.log10(self.rates), np.array(self.smoothed)
        width = max(5, len(curve) // 8)
        end = max(int(curve.argmin()) + 1, width)
        begins = range(end - width + 1)
        slopes = [np.polyfit(at[k : k + width], curve[k : k + width], 1)[0] for k in begins]
        steepest = int(np.argmin(slopes))
        return self.rates[steepest + width // 2] if slopes[steepest] < 0 else None

    def panel(self) -> Panel:
        """Return the diagram, over the power of ten of the rate."""
        at = [log10(rate) for rate in self.rates]
        curves: dict[str, Series] = {
            "loss": (at, list(self.losses)),
            "smoothed": (at, list(self.smoothed)),
        }
        suggestion = self.suggestion
        text = "" if suggestion is None else f", which falls fastest at {suggestion:.2g}"
        return Panel(f"loss{text}", curves, "learning rate, power of ten")

    def plot(self, out: str | os.PathLike[str] | None = None) -> Curves:
        """Return a picture, and write it to ``out`` if given, a file named .svg, .png or .pdf."""
        return Curves([self.panel()]).saved(out)

    def __repr__(self) -> str:
        suggestion = self.suggestion
        text = "the loss never fell" if suggestion is None else f"suggestion {suggestion:.2g}"
        return f"<RateCurve: {len(self.rates)} steps up to {self.rates[-1]:.2g}, {text}>"

    def _repr_html_(self) -> str:
        return svg([self.panel()])


def find_lr(
    solver: Any = None,
    data: Any = None,
    *,
    low: float = 1e-6,
    high: float = 10.0,
    steps: int = 100,
    **settings: Any,
) -> RateCurve:
    """Return the loss over the learning rate, which rises from ``low`` to ``high`` in ``steps``
    steps.

    ``solver``, ``data`` and the other settings are those of `train`; the solver's own rate and
    policy are ignored, and neither it nor a `Net` that is given changes.  The training ends
    early where the loss rises for good.  ``suggestion`` is a rate to begin with, ``plot("lr.svg")``
    draws the curve, and a notebook shows it.  In place of a solver it takes a ``module`` of
    PyTorch with its ``loss`` and ``optimizer``; of several rates of the optimizer the first one
    rises from ``low``, and the others with it.

    >>> import numpy as np
    >>> from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
    >>> lines = NetParams(
    ...     "lines",
    ...     RDDLayer("data", shape=[32, 2]),
    ...     RDDLayer("label", shape=[32]),
    ...     LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
    ...     SoftmaxWithLoss("loss", ["ip", "label"]),
    ... )
    >>> points = np.random.default_rng(0).normal(size=(1000, 2))
    >>> solver = SolverParams(net=lines, base_lr=1, lr_policy="fixed", random_seed=1)
    >>> found = find_lr(solver, (points, points[:, 0] > points[:, 1]), seed=1)
    >>> 0.01 < found.suggestion < 10
    True
    """
    _check(low, high, steps, settings)
    factor = (high / low) ** (1 / (steps - 1))
    process_settings = ProcessSettings(solver, data, **settings)
    if process_settings.module is not None:
        schedule = partial(_rising_schedule, low, factor)
        return _curve(replace(process_settings, lr_schedule=schedule), low, factor, steps)
    trained_net = net_of(process_settings, process_settings.solver, process_settings.weights, None)
    net = trained_net.with_solver(_rising(solver_of(trained_net), low, factor))
    others = {name: settings[name] for name in settings.keys() - _OF_THE_NET}
    return _curve(ProcessSettings(net, data, **others), low, factor, steps)


def _curve(given: ProcessSettings, low: float, factor: float, steps: int) -> RateCurve:
    """Return the losses of a training whose rate begins at ``low`` and grows by a factor."""
    losses: list[float] = []
    rising = replace(
        given,
        strategy=Averaging(steps=1),
        steps=steps,
        diverged=_RISEN,
        on_event=lambda event: losses.append(event["loss"]) if event["event"] == "round" else None,
    )
    with suppress(Diverged), unheard():
        unwrap(train)(rising)
    if len(losses) < FEWEST:
        raise Diverged(
            f"the loss rose for good or was not finite after {len(losses)} steps, from the "
            f"learning rate {low:g} on: give a smaller low, or more steps"
        )
    return RateCurve(tuple(low * factor**step for step in range(len(losses))), tuple(losses))


def _check(low: float, high: float, steps: int, settings: Mapping[str, Any]) -> None:
    if not 0 < low < high < inf:
        raise SettingError(f"low is {low:g} and high {high:g}: 0 < low < high is needed")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < FEWEST:
        raise SettingError(f"steps is {steps!r}: a whole number, at least {FEWEST}, is needed")
    names = [field.name for field in fields(ProcessSettings)]
    for name in settings:
        if name in _OWN:
            raise SettingError(f"find_lr takes no {name}: it decides that itself")
        if name not in names:
            raise SpecError(f"there is no keyword '{name}'{did_you_mean(name, names)}")


def _rising_schedule(low: float, factor: float, optimizer: Any) -> Any:
    """Return a scheduler of torch's by which the rate grows by this factor in each step."""
    from torch.optim.lr_scheduler import LambdaLR

    first = optimizer.param_groups[0]["lr"]
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] = low * (group["lr"] / first if first else 1.0)
    return LambdaLR(optimizer, partial(pow, factor))


def _rising(
    given: caffe_pb2.SolverParameter, low: float, factor: float
) -> caffe_pb2.SolverParameter:
    """Return the solver with a rate that grows by this factor in each step."""
    solver = type(given)()
    solver.CopyFrom(given)
    for name in _RATES:
        solver.ClearField(name)
    solver.base_lr, solver.lr_policy, solver.gamma = low, "exp", factor
    return solver
