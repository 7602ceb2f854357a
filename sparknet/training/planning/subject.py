"""Subject: what is planned for, a net with its solver or a module of PyTorch."""

from __future__ import annotations

from time import perf_counter
from typing import Any, Protocol

from sparknet.net import Net
from sparknet.torch.modules.calling import chosen_inputs
from sparknet.training.modules.begin import ModuleBeginning, parts_of
from sparknet.training.modules.keywords import ModuleKeywords
from sparknet.training.modules.train import first_of
from sparknet.training.planning.batches import made_up, with_batch
from sparknet.training.setting import values_of
from sparknet.training.training_net import settings
from sparknet.training.training_settings import RunSettings
from sparknet.weights import WeightCollection


class Subject(Protocol):
    """What is planned for."""

    name: str
    nbytes: int
    """Bytes of the weights."""
    batch_size: int
    iter_size: int
    """Batches of an iteration."""

    def rough_pass(self) -> float:
        """Seconds that the passes of one record take on all cores, from a tiny batch."""
        ...

    def with_batch(self, batch: int) -> Any:
        """What is trained, with another batch size, as a runner is given it."""
        ...

    def keywords(self, given: Any) -> dict[str, Any]:
        """The keywords of `train` that name what `with_batch` gave."""
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
        begun = perf_counter()
        alone.train(1)
        return (perf_counter() - begun) / tiny

    def with_batch(self, batch: int) -> Any:
        return with_batch(self._net, batch)

    def keywords(self, given: Any) -> dict[str, Any]:
        return {"solver": given}

    def made_up(self, count: int) -> Any:
        return made_up(self._net, count)


class ModuleSubject:
    """A module with its loss and optimizer, which keeps its own data."""

    def __init__(self, how: ModuleKeywords, data: Any, precision: Any) -> None:
        parts, self._how = parts_of(how), how
        self._inputs = chosen_inputs(parts.module, list(data.columns), how.targets)
        self._first = first_of(data)
        settings = RunSettings(steps=1, precision=precision)
        begun = ModuleBeginning(settings, None, False, False, how, parts, self._inputs, self._first)
        self._begun, self.name, self.iter_size = begun, begun.name, how.accumulate
        self.batch_size = begun.sent.batch_size
        self.nbytes = begun.flat.weights.nbytes

    def rough_pass(self) -> float:
        return self._begun.seconds_of_passes(self._first)

    def with_batch(self, batch: int) -> Any:
        how = self._how
        return {**values_of(how, ModuleKeywords), "target": how.targets, "batch_size": batch}

    def keywords(self, given: Any) -> dict[str, Any]:
        return dict(given)

    def made_up(self, count: int) -> Any:
        raise AssertionError("a module has data of its own")
