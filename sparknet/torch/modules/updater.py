"""Updater: an optimizer of torch over pieces of flat buffers, with its state in flat histories."""

from __future__ import annotations

import base64
import copy
import warnings
from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.caffe.solvers.rate import current_step, learning_rate
from sparknet.errors import SettingError
from sparknet.native import NDArray
from sparknet.proto import caffe_pb2
from sparknet.torch.modules.flat_module import FlatModule, tensor_of
from sparknet.weights import Span

_STEP = "step"
_ELEMENTWISE = (
    *("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax"),
    *("Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD"),
)
"""Optimizers that compute each weight's update from its own gradient alone."""


def made_optimizer(given: Any, module: Any) -> Any:
    """Return the optimizer itself, or the one that a function makes of the module's parameters."""
    import torch

    optimizer = given
    if not isinstance(given, torch.optim.Optimizer):
        if not callable(given):
            raise SettingError(
                "optimizer must be an optimizer of torch.optim, or a function that makes one of "
                f"parameters, not {given!r}"
            )
        optimizer = given([one for one in module.parameters() if one.requires_grad])
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise SettingError(f"optimizer must make an optimizer of torch.optim, not {optimizer!r}")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise SettingError("optimizer LBFGS computes gradients itself: take another one")
    own = {id(one) for one in module.parameters()}
    if any(id(one) not in own for group in optimizer.param_groups for one in group["params"]):
        raise SettingError("the optimizer has parameters that are none of the module's")
    return optimizer


def is_elementwise(optimizer: Any) -> bool:
    kind = type(optimizer)
    return kind.__name__ in _ELEMENTWISE and kind.__module__.startswith("torch.optim.")


@dataclass(frozen=True)
class FlatPiece:
    """A part of the flat buffers that an optimizer takes for a parameter."""

    group: int
    begin: int
    end: int
    shape: tuple[int, ...]
    owner: int
    """The number of the parameter of which it is a part."""
    place: int
    """Where that begins."""


class FlatOptimizer:
    """An optimizer's groups, and its state: histories as flat buffers, and what else there is."""

    def __init__(self, optimizer: Any, flat: FlatModule, gradients: NDArray) -> None:
        self.optimizer, self._size = optimizer, flat.weights.size
        self.weights, self.gradients = flat.tensor, tensor_of(gradients)
        places = {id(one): place for place, one in flat.parameters.values()}
        self._all = [
            FlatPiece(number, *places[id(one)], tuple(one.shape), owner, places[id(one)][0])
            for owner, (number, one) in enumerate(
                (number, one)
                for number, group in enumerate(optimizer.param_groups)
                for one in group["params"]
                if one.requires_grad
            )
        ]
        self.names, self.other = self._state_of(optimizer)
        """The histories, and initial values of the other entries of a parameter's state."""
        self.histories = [NDArray.zeros((self._size,)) for _ in self.names]
        self.tensors = dict(zip(self.names, map(tensor_of, self.histories), strict=True))
        self.is_begun = bool(optimizer.state)
        """Whether the histories hold more than what the first step makes of nothing."""
        for group in optimizer.param_groups:
            for one in group["params"]:
                for name, values in optimizer.state.get(one, {}).items():
                    if name in self.tensors and values is not None:
                        begin, end = places[id(one)]
                        self.tensors[name][begin:end].copy_(values.reshape(-1))
        self.offset = max(
            (int(one[_STEP]) for one in optimizer.state.values() if _STEP in one), default=0
        )

    def pieces(self, span: Span | None = None) -> list[FlatPiece]:
        """Return those of a slice, or whole parameters."""
        if span is None:
            return self._all
        pieces = []
        for one in self._all:
            begin, end = max(one.begin, span[0]), min(one.end, span[1])
            if begin < end:
                shape = (end - begin,)
                pieces.append(FlatPiece(one.group, begin, end, shape, one.owner, one.place))
        return pieces

    def _state_of(self, optimizer: Any) -> tuple[list[str], dict[str, Any]]:
        """Return the entries of a parameter's state, by one step of others."""
        import torch

        states = [dict(one) for one in optimizer.state.values()]
        sizes = [tuple(one.shape) for one in optimizer.state]
        if not states:
            shape = (2, 3)
            groups = []
            for settings in settings_of_groups(optimizer):
                tried = torch.nn.Parameter(torch.zeros(shape))
                tried.grad = torch.ones(shape)
                groups.append({**settings, "params": [tried]})
            clone = with_groups(optimizer, groups)
            try:
                clone.step()
            except Exception as error:
                kind = type(optimizer).__name__
                raise SettingError(f"optimizer {kind} fails in a step: {error}") from error
            states, sizes = [dict(one) for one in clone.state.values()], [shape] * len(groups)
        histories: dict[str, None] = {}
        other: dict[str, Any] = {}
        for state, size in zip(states, sizes, strict=False):
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and tuple(value.shape) == size:
                    histories[name] = None
                elif value is not None:
                    other.setdefault(name, value)
        return list(histories), other


class Updater:
    """Steps of an optimizer on some pieces.  It keeps its state in the flat histories."""

    def __init__(self, flat: FlatOptimizer, span: Span | None = None) -> None:
        import torch

        self._flat, self.span = flat, span
        self._pieces = flat.pieces(span)
        self._parameters, self._gradients = [], []
        self._count = len(flat.pieces())
        self._is_whole = True
        settings = settings_of_groups(flat.optimizer)
        groups: list[dict[str, Any]] = [{**one, "params": []} for one in settings]
        for piece in self._pieces:
            values = flat.weights[piece.begin : piece.end].view(piece.shape)
            one = torch.nn.Parameter(values)
            one.grad = flat.gradients[piece.begin : piece.end].view(piece.shape)
            self._gradients.append(one.grad)
            self._parameters.append(one)
            groups[piece.group]["params"].append(one)
        groups_with = [group for group in groups if group["params"]]
        self._used = [number for number, group in enumerate(groups) if group["params"]]
        self._optimizer: Any = with_groups(flat.optimizer, groups_with) if groups_with else None
        self._at: int | None = None

    def step(self, iteration: int, settings: Groups, reached: Collection[int]) -> None:
        """Update; ``reached`` are the parameters that this worker's loss depends on."""
        if self._optimizer is None:
            return
        for group, number in zip(self._optimizer.param_groups, self._used, strict=True):
            group.update(settings[number])
        self._begin(iteration)
        self._leave_out(reached)
        self._optimizer.step()
        self._adopt()
        self._at = iteration + 1

    def _leave_out(self, reached: Collection[int]) -> None:
        """Leave parameters that no worker's loss depends on without a gradient."""
        if self._is_whole and len(reached) == self._count:
            return
        self._is_whole = True
        pairs = zip(self._parameters, self._pieces, self._gradients, strict=True)
        for one, piece, gradient in pairs:
            has_gradient = piece.place in reached or bool(gradient.any())
            one.grad = gradient if has_gradient else None
            self._is_whole = self._is_whole and has_gradient

    def _begin(self, iteration: int) -> None:
        """Have the state of this iteration, which a strategy or a snapshot may have set."""
        import torch

        if self._at == iteration or (iteration == 0 and not self._flat.is_begun):
            return
        for one, piece in zip(self._parameters, self._pieces, strict=True):
            state = self._optimizer.state[one]
            for name, whole in self._flat.tensors.items():
                state.setdefault(name, whole[piece.begin : piece.end].view(piece.shape))
            for name, value in self._flat.other.items():
                if name == _STEP:
                    count = float(self._flat.offset + iteration)
                    is_tensor = isinstance(value, torch.Tensor)
                    state[name] = torch.full_like(value, count) if is_tensor else int(count)
                elif name not in state:
                    state[name] = value.clone() if isinstance(value, torch.Tensor) else value

    def _adopt(self) -> None:
        """Move what the optimizer made of its own into the histories."""
        for one, piece in zip(self._parameters, self._pieces, strict=True):
            state = self._optimizer.state[one]
            for name, whole in self._flat.tensors.items():
                values = state.get(name)
                if values is None:
                    continue
                view = whole[piece.begin : piece.end].view(piece.shape)
                if values.data_ptr() != view.data_ptr():
                    view.copy_(values)
                    state[name] = view

    # -- what lies in no history ----------------------------------------------------------

    def rest(self) -> dict[str, Any]:
        """Return the state outside the histories, as JSON, by the number of the parameter."""
        if self._optimizer is None:
            return {}
        states: dict[str, Any] = {}
        for one, piece in zip(self._parameters, self._pieces, strict=True):
            state = self._optimizer.state.get(one, {})
            state_entries = {
                name: _to_json(value)
                for name, value in state.items()
                if name not in self._flat.tensors and name != _STEP and value is not None
            }
            if state_entries:
                states[str(piece.owner)] = state_entries
        return states

    def restore(self, told: Mapping[str, Any]) -> None:
        if self._optimizer is None:
            return
        for one, piece in zip(self._parameters, self._pieces, strict=True):
            for name, value in told.get(str(piece.owner), {}).items():
                self._optimizer.state[one][name] = _of_json(value)


def _to_json(value: Any) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    array = value.detach().cpu().numpy()
    text = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "values": text}


def _of_json(told: Any) -> Any:
    import torch

    if not isinstance(told, dict):
        return told
    array = np.frombuffer(base64.b64decode(told["values"]), np.dtype(told["dtype"]))
    return torch.from_numpy(array.reshape(told["shape"]).copy())


Groups = list[dict[str, Any]]
"""The settings of each group of parameters, such as lr and betas."""

_REMEMBERED = 1024
"""Iterations that a strategy may go back without the schedule beginning anew."""


def with_groups(optimizer: Any, groups: Sequence[Mapping[str, Any]]) -> Any:
    """Return an optimizer of the same kind for other parameters, with no state."""
    clone = copy.copy(optimizer)
    clone.param_groups = [dict(group) for group in groups]
    clone.state = defaultdict(dict)
    return clone


def settings_of_groups(optimizer: Any) -> Groups:
    return [
        {name: value for name, value in group.items() if name != "params"}
        for group in optimizer.param_groups
    ]


class ScheduledRates:
    """A schedule as a function of the iteration.

    A torch scheduler runs over an optimizer without gradients: its position is its own, so it is
    begun anew where a strategy goes back further than is remembered."""

    def __init__(self, optimizer: Any, schedule: Any) -> None:
        self._optimizer, self._schedule = optimizer, schedule
        self._first = settings_of_groups(optimizer)
        self._policy = _policy(schedule) if isinstance(schedule, Mapping) else None
        self._stepped = schedule is not None and self._policy is None
        if self._stepped:
            self._begin()

    def at(self, iteration: int) -> Groups:
        """Return the settings for the update after so many others."""
        if self._policy is not None:
            lowered = sum(value < iteration for value in self._policy.stepvalue)
            step = current_step(self._policy, iteration, lowered)
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
        """Return the user's own scheduler as it is now, over the optimizer without gradients."""
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
