"""ScheduledRates: the settings of an optimizer at any iteration, as a schedule has them."""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from sparknet.caffe.solvers.rate import current_step, learning_rate
from sparknet.errors import SettingError
from sparknet.proto import caffe_pb2

Groups = list[dict[str, Any]]
"""The settings of each group of parameters, such as lr and betas."""

_REMEMBERED = 1024
"""Iterations that a strategy may go back without the schedule beginning anew."""


def with_groups(optimizer: Any, groups: Sequence[Mapping[str, Any]]) -> Any:
    """An optimizer of the same kind for other parameters, with no state."""
    made = copy.copy(optimizer)
    made.param_groups = [dict(group) for group in groups]
    made.state = defaultdict(dict)
    return made


def settings_of_groups(optimizer: Any) -> Groups:
    return [
        {name: value for name, value in group.items() if name != "params"}
        for group in optimizer.param_groups
    ]


class ScheduledRates:
    """A schedule as a function of the iteration.

    A torch scheduler runs over an optimizer without gradients: its position is its own, so it is
    begun anew where a strategy goes back further than is remembered.
    """

    def __init__(self, optimizer: Any, schedule: Any) -> None:
        self._optimizer, self._schedule = optimizer, schedule
        self._first = settings_of_groups(optimizer)
        self._policy = _policy(schedule) if isinstance(schedule, Mapping) else None
        self._stepped = schedule is not None and self._policy is None
        if self._stepped:
            self._begin()

    def at(self, iteration: int) -> Groups:
        """The settings for the update after so many others."""
        if self._policy is not None:
            step = current_step(self._policy, iteration, _lowered(self._policy, iteration))
            factor = learning_rate(self._policy, iteration, step)
            return [{**group, "lr": group["lr"] * factor} for group in self._first]
        if not self._stepped:
            return self._first
        if iteration < self._place + 1 - len(self._known):
            self._begin()
        while self._place < iteration:
            self._advance()
        return self._known[iteration - self._place - 1]

    def _begin(self) -> None:
        import torch

        groups = [{**one, "params": [torch.nn.Parameter(torch.zeros(1))]} for one in self._first]
        self._moved = with_groups(self._optimizer, groups)
        kinds = torch.optim.lr_scheduler
        if isinstance(self._schedule, kinds.LRScheduler):
            self._scheduler = self._moved_schedule()
        else:
            try:
                self._scheduler = self._schedule(self._moved)
            except TypeError as error:
                raise SettingError(
                    "lr_schedule must be a scheduler of the optimizer or a function that makes one "
                    f"of it: {error}"
                ) from error
        if isinstance(self._scheduler, kinds.ReduceLROnPlateau):
            raise SettingError(
                "lr_schedule makes a ReduceLROnPlateau, which needs losses: workers only know the "
                "iteration"
            )
        if not isinstance(self._scheduler, kinds.LRScheduler):
            kind = type(self._scheduler).__name__
            raise SettingError(
                f"lr_schedule must make a scheduler of torch.optim.lr_scheduler, not {kind}"
            )
        self._place = 0
        self._known = deque([settings_of_groups(self._moved)], _REMEMBERED)

    def _moved_schedule(self) -> Any:
        """The user's own scheduler as it is now, over the optimizer without gradients."""
        theirs = getattr(self._schedule, "optimizer", None)
        if theirs is not self._optimizer:
            raise SettingError("lr_schedule is the scheduler of another optimizer than the given")
        return copy.deepcopy(self._schedule, {id(theirs): self._moved})

    def _advance(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._moved.step()
            with suppress(ValueError):  # OneCycleLR has no rate after its last step: it stays
                self._scheduler.step()
        self._place += 1
        self._known.append(settings_of_groups(self._moved))


def _policy(given: Mapping[str, Any]) -> caffe_pb2.SolverParameter:
    try:
        return caffe_pb2.SolverParameter(base_lr=1.0, **given)
    except (TypeError, ValueError) as error:
        raise SettingError(f"lr_schedule {dict(given)!r} is no policy of Caffe: {error}") from error


def _lowered(solver: caffe_pb2.SolverParameter, iteration: int) -> int:
    return sum(value < iteration for value in solver.stepvalue)
