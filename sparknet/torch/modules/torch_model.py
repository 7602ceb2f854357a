"""TorchModel: a module of PyTorch as a `Model`, and how it travels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, cast

import numpy as np

from sparknet.errors import SettingError
from sparknet.loaders.batches import Batches, one_pass
from sparknet.loaders.records import Records
from sparknet.native import NDArray
from sparknet.net.heads import Kind
from sparknet.net.learner import Learner
from sparknet.net.model import PLAIN, AllRows, Array, Model, ModuleInput
from sparknet.net.model_inputs import ModelInputs
from sparknet.net.scores import Scores
from sparknet.proto.byte_source import StrPath
from sparknet.torch.modules.calling import (
    ModuleLoss,
    computed,
    computing_in,
    evaluation_mode,
)
from sparknet.torch.modules.flat_module import FlatModule, ModuleParts, PortableModule, packed
from sparknet.torch.modules.learner import ModuleFeed, TorchLearner
from sparknet.torch.modules.named_code import NamedCode
from sparknet.torch.modules.own_random import OwnRandom, random_state
from sparknet.torch.modules.saved_module import SavedModule, save_module
from sparknet.weights import Layout

Step = Literal["softmax", "sigmoid", "pair", "argmax"]


@dataclass(frozen=True)
class Derived:
    """An array made of an output, with a row for each record, as layers make it of a net's."""

    of: str
    steps: tuple[Step, ...]


_PRIME = 7919


class TorchModel(Model):
    """A module; with its loss and optimizer, if it is to learn."""

    def __init__(
        self,
        module: Any,
        flat: FlatModule | None = None,
        sent: PortableModule | None = None,
        parts: ModuleParts | None = None,
    ) -> None:
        self.module, self.flat = module, flat
        self.made_by: NamedCode | None = None
        """What makes such a module, if that has a name."""
        self.records: Mapping[str, Array] | None = None
        """A few records by argument."""
        self.kind: Kind | None = None
        """What the numbers of the first output are."""
        self.derived: Mapping[str, Derived] = {}
        """What else is made of the module's outputs, by name."""
        self._held_out: Records | None = None
        self._random: Any = None
        """The state of torch's generator at the beginning of a worker's training."""
        if sent is not None and parts is not None:
            self.batch_size, self.iter_size = sent.batch_size, sent.accumulate
            self._sent, self._parts, self._loss = sent, parts, ModuleLoss(parts.loss)

    @classmethod
    def learning(cls, sent: PortableModule, seed: int, rank: int) -> TorchModel:
        """Return the model of a worker that trains."""
        parts = sent.unpacked()
        model = cls(parts.module, FlatModule(parts.module), sent, parts)
        model._random = random_state(seed + _PRIME * rank)
        return model

    @property
    def first_records(self) -> Mapping[str, Array]:
        """A few records by argument; SettingError where there are none."""
        if self.records is None:
            raise SettingError(
                "the model has no first rows to look at: make it by Trainer.fit, or give it "
                "records={'x': …}, a few by argument"
            )
        return self.records

    @property
    def inputs(self) -> Mapping[str, ModuleInput]:
        return {name: ModuleInput(one.shape[1:]) for name, one in self.first_records.items()}

    def description(self, columns: Mapping[str, str]) -> SavedModule:
        """Return what a file says of the module, whose arguments have these columns."""
        return SavedModule.of(self.module, self.made_by, columns, self.first_records, self.kind)

    def save(self, path: StrPath, metadata: ModelInputs = PLAIN) -> None:
        save_module(self.module, self.description(metadata.columns), path)

    @property
    def weights(self) -> NDArray:
        if self.flat is not None:
            return self.flat.weights
        flat = FlatModule(portable(self.module).unpacked().module, learns=False)
        flat.module.load_state_dict(self.module.state_dict(), strict=False)
        flat.pull()
        return flat.weights

    def forward(self, values: dict[str, Array], outputs: Sequence[str]) -> dict[str, Array]:
        tops = self.computed(values)
        return {name: tops[name] for name in outputs}

    def computed(self, records: Mapping[str, Array]) -> dict[str, Array]:
        """Return the outputs of a batch by name, and what is derived from them."""
        outputs = computed(self.module, records)
        for name, one in self.derived.items():
            values = outputs[one.of]
            for step in one.steps:
                values = _STEPS[step](values)
            outputs[name] = values
        return outputs

    # -- learning ------------------------------------------------------------------------

    @property
    def layout(self) -> Layout:
        assert self.flat is not None
        return self.flat.layout

    def learner(self, batches: Batches) -> Learner:
        assert self.flat is not None
        self._feed = ModuleFeed(batches, self._sent)
        train_mode(self.module)
        inner = TorchLearner(self.flat, self._parts, self._feed, self._sent)
        learner: Any = OwnRandom(inner, self._random)
        return cast(Learner, learner)

    def set_validation_data(self, records: Records) -> None:
        self._held_out = records

    def measure(self, metrics: Sequence[str], all_rows: AllRows) -> dict[str, float]:
        import torch

        if self._held_out is None:
            return {}
        feed = ModuleFeed(self._feed.batches, self._sent)
        sums: dict[str, float] = {}
        scores = Scores(metrics)
        with torch.no_grad(), evaluation_mode(self.module):
            for batch in one_pass(self._held_out, self.batch_size):
                feed.put(batch)
                for name, value in self._measured(feed, scores if metrics else None).items():
                    sums[name] = sums.get(name, 0.0) + value * feed.count
        means = {name: value / len(self._held_out) for name, value in sums.items()}
        return means | (scores.parts() if metrics else {})

    def _measured(self, feed: ModuleFeed, scores: Scores | None) -> dict[str, float]:
        with computing_in(self._sent.precision):
            outputs = self.module(**feed.inputs)
            metrics = {"loss": float(self._loss(outputs, feed.targets, feed.weights))}
        predictions, real, accuracy = self._loss.judged(outputs, feed.targets)
        if accuracy is not None:
            metrics["accuracy"] = accuracy
        if scores is not None and predictions is not None:
            scores.add(predictions.cpu().numpy(), real.cpu().numpy(), feed.count)
        return metrics

    def ranges(self) -> dict[str, tuple[float, float]]:
        inputs = self._feed.inputs.items()
        return {name: (float(one.min()), float(one.max())) for name, one in inputs if one.numel()}


def train_mode(module: Any) -> None:
    """Set the mode of training, by a part's own `train` where it has one."""
    import torch

    if not module.training or getattr(module.train, "__func__", None) is not torch.nn.Module.train:
        module.train()
        return
    for part in module.children():
        if part.training:
            train_mode(part)


# -- without its weights -------------------------------------------------------------------------


def portable(module: Any) -> PortableModule:
    """Return a module that predicts as bytes, without the values of its weights."""
    parts = packed(ModuleParts(module, None, None, None))
    return PortableModule(parts, {}, (), 1, "average", None, "cpu")


@dataclass(frozen=True)
class PortableTorch:
    """A module that predicts, without its weights."""

    module: PortableModule
    derived: Mapping[str, Derived] = field(default_factory=dict)

    @classmethod
    def of(cls, model: TorchModel) -> PortableTorch:
        return cls(portable(model.module), model.derived)

    @property
    def key(self) -> Any:
        code = blake2b(self.module.data, digest_size=16).hexdigest()
        return code, tuple(self.derived.items())

    def open(self, weights: NDArray, device: str | None) -> TorchModel:
        flat = FlatModule(self.module.unpacked().module, learns=False)
        flat.weights.copy_from(weights)
        flat.push()
        model = TorchModel(flat.module)
        model.derived = self.derived
        return model


# -- what is derived from outputs --------------------------------------------------------------


def _softmax(values: Array) -> Array:
    grown: Array = np.exp(values - values.max(axis=1, keepdims=True))
    shares: Array = grown / grown.sum(axis=1, keepdims=True)
    return shares


def _sigmoid(values: Array) -> Array:
    shares: Array = 0.5 * np.tanh(0.5 * values) + np.float32(0.5)
    return shares.astype(np.float32)


def _pair(values: Array) -> Array:
    """Return scores of two classes, no and yes, as pyspark.ml has them."""
    flat = values.reshape(len(values), 1)
    return np.concatenate([-flat, flat], axis=1)


def _argmax(values: Array) -> Array:
    places: Array = values.argmax(axis=1).astype(np.float32)
    return places


_STEPS: dict[Step, Callable[[Array], Array]] = {
    "softmax": _softmax,
    "sigmoid": _sigmoid,
    "pair": _pair,
    "argmax": _argmax,
}
