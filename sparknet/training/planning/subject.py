"""What is planned for: a net with its solver or a module of PyTorch, in several batch sizes."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Protocol

import numpy as np

from sparknet.errors import SettingError
from sparknet.layers import LAYERS
from sparknet.loaders.records import ArrayRecords
from sparknet.net import Net
from sparknet.net.portable import portable_solver
from sparknet.proto import caffe_pb2, parse_solver
from sparknet.torch.modules.calling import chosen_inputs
from sparknet.torch.modules.trial import parts_of
from sparknet.training.module_setup import ModuleSetup
from sparknet.training.opening import first_of
from sparknet.training.settings.fields import values_of
from sparknet.training.settings.module import ModuleKeywords
from sparknet.training.settings.training import RunSettings
from sparknet.training.training_net import settings
from sparknet.weights import WeightCollection

_MOST_BYTES = 64 << 20


def with_batch(net: Net, batch: int) -> caffe_pb2.SolverParameter:
    """Return a net's solver whose training net takes batches of this size; it has no test nets."""
    solver = parse_solver(portable_solver(settings(net)).text)
    for name in ("test_net_param", "test_iter", "test_state"):
        solver.ClearField(name)
    solver.ClearField("test_interval")
    whole = solver.HasField("train_net_param")
    message = solver.train_net_param if whole else solver.net_param
    for layer in message.layer:
        places = [net.inputs[top] for top in layer.top if top in net.inputs]
        if not places or LAYERS[layer.type].field is None:
            continue
        param: Any = getattr(layer, LAYERS[layer.type].field or "")
        if LAYERS[layer.type].is_input:
            for number, shape in enumerate(param.shape):
                place = net.inputs.get(layer.top[number])
                if place is not None and shape.dim:
                    shape.dim[place.axis] = batch
        elif hasattr(param, "batch_size"):
            param.batch_size = batch
    return solver


def made_up(net: Net, count: int) -> ArrayRecords:
    """Random records of the shapes that a net takes, few enough for the memory.

    Labels are 0 or 1 by chance: what can be learned at once ends in subnormal gradients, with
    which processors are slow.
    """
    columns: dict[str, Any] = {}
    random = np.random.default_rng(0)
    for name, entry in net.inputs.items():
        shape = [size or 256 for size in entry.stored]
        if 0 in shape:
            raise SettingError(f"the shape of '{name}' is not known: give the data to plan for")
        rows = max(1, min(count, _MOST_BYTES // (4 * int(np.prod(shape, dtype=np.int64)))))
        count = min(count, rows)
        columns[name] = (shape, entry.is_label)
    return ArrayRecords(
        **{
            name: random.integers(0, 2, (count, *shape)).astype(np.float32)
            if is_label
            else random.standard_normal((count, *shape), dtype=np.float32)
            for name, (shape, is_label) in columns.items()
        }
    )


class Subject(Protocol):
    """What is planned for."""

    name: str
    nbytes: int
    """Bytes of the weights."""
    batch_size: int
    iter_size: int
    """Batches of an iteration."""

    def rough_pass(self) -> float:
        """Return seconds that the passes of one record take on all cores, from a tiny batch."""
        ...

    def with_batch(self, batch: int) -> Any:
        """Return what is trained, with another batch size, as a runner is given it."""
        ...

    def keywords(self, given: Any) -> dict[str, Any]:
        """Return the keywords of `train` that name what `with_batch` gave."""
        ...

    def made_up(self, count: int) -> Any:
        """Random records."""
        ...


class NetSubject:
    """A net with its solver."""

    def __init__(self, net: Net) -> None:
        self._net, self.name, self.batch_size = net, net.described.name, net.batch_size
        self.nbytes = WeightCollection.of(net.net, copy=None).flat.nbytes
        self.iter_size = int(settings(net).iter_size)

    def rough_pass(self) -> float:
        net = self._net
        tiny = max(1, min(net.batch_size, 4))
        alone = Net(with_batch(net, tiny), seed=0, precision=net.precision, device=net.device)
        alone.set_training_data(made_up(alone, tiny))
        alone.train(1)
        start = perf_counter()
        alone.train(1)
        return (perf_counter() - start) / tiny

    def with_batch(self, batch: int) -> Any:
        return with_batch(self._net, batch)

    def keywords(self, given: Any) -> dict[str, Any]:
        return {"solver": given}

    def made_up(self, count: int) -> Any:
        return made_up(self._net, count)


class ModuleSubject:
    """A module with its loss and optimizer, which keeps its own data."""

    def __init__(self, how: ModuleKeywords, data: Any, precision: Any) -> None:
        parts, self._how = parts_of(how.module, how.loss, how.optimizer, how.lr_schedule), how
        self._inputs = chosen_inputs(parts.module, list(data.columns), how.targets)
        self._first = first_of(data)
        settings = RunSettings(steps=1, precision=precision)
        setup = ModuleSetup(settings, None, False, False, how, parts, self._inputs, self._first)
        self._begun, self.name, self.iter_size = setup, setup.name, how.accumulate
        self.batch_size = setup.portable().batch_size
        self.nbytes = setup.flat.weights.nbytes

    def rough_pass(self) -> float:
        return self._begun.seconds_of_passes(self._first)

    def with_batch(self, batch: int) -> Any:
        how = self._how
        return {**values_of(how, ModuleKeywords), "target": how.targets, "batch_size": batch}

    def keywords(self, given: Any) -> dict[str, Any]:
        return dict(given)

    def made_up(self, count: int) -> Any:
        raise AssertionError("a module has data of its own")
