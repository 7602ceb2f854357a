"""CaffeModel: a net of any pycaffe as a `Model`, and how it travels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.loaders.batches import Batches, Transforms
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import Records, class_names
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.entries import Entry
from sparknet.net.fed import FedNet
from sparknet.net.learner import Learner, NetFeed, SolverLearner
from sparknet.net.model import PLAIN, AllRows, Array, Model
from sparknet.net.model_folder import save_model
from sparknet.net.model_inputs import ModelInputs
from sparknet.net.portable import Portable, portable_net
from sparknet.net.pycaffe_learner import PycaffeLearner
from sparknet.net.record_checks import chance_loss
from sparknet.net.scratch import scratch_folder
from sparknet.proto.byte_source import StrPath
from sparknet.weights import Layout, WeightCollection, layout_of

if TYPE_CHECKING:
    from sparknet.caffe.precision import Precision


class CaffeModel(Model):
    """A net, which predicts in phase TEST; ``seed`` and ``rank`` are those of a worker."""

    def __init__(self, net: Net, seed: int = 0, rank: int = 0) -> None:
        self.net, self._seed, self._rank = net, seed, rank
        self._alone: FedNet | None = None
        self._validates = False

    @property
    def tested(self) -> FedNet:
        """The net that predicts."""
        return self._alone or self.net.tested

    @property
    def inputs(self) -> Mapping[str, Entry]:
        return {entry.name: entry for entry in self.tested.entries}

    def save(self, path: StrPath, metadata: ModelInputs = PLAIN) -> None:
        net = self.net
        save_model(
            net,
            path,
            replace(
                metadata,
                preprocessing=net.preprocessing,
                labels=metadata.labels or net.labels,
                features=metadata.features or net.features,
            ),
        )

    @property
    def weights(self) -> NDArray:
        return WeightCollection.of(self.tested.net, copy=None).flat

    @property
    def device(self) -> str | None:
        device: str | None = getattr(self.tested.net, "device", None)  # other pycaffes have none
        return device

    def forward(self, values: dict[str, Array], outputs: Sequence[str]) -> dict[str, Array]:
        tested = self._alone or self.tested
        batch_pass, columns = tested.batch_pass(values, outputs)
        return batch_pass.run(columns, tested.taken)

    def trim(self) -> None:
        self.tested.net.trim()

    # -- learning ------------------------------------------------------------------------

    @property
    def batch_size(self) -> int:  # type: ignore[override]
        return self.net.batch_size

    @property
    def iter_size(self) -> int:  # type: ignore[override]
        settings = self.net.settings
        return 1 if settings is None else int(settings.iter_size)

    @property
    def layout(self) -> Layout:
        return layout_of(self.net.net)

    @property
    def transforms(self) -> Transforms:
        return self.net.staged_transforms

    @property
    def chance(self) -> float | None:
        return chance_loss(self.net)

    def learner(self, batches: Batches) -> Learner:
        net, feed = self.net, NetFeed(self.net, batches)
        learner: Learner
        if net.backend.is_embedded:
            learner = SolverLearner(net.solver, feed)
        else:
            learner = PycaffeLearner(net, feed, self._seed + self._rank)
        net.backend.draw_apart(net.net, self._seed, self._rank)
        return learner

    def set_validation_data(self, records: Records) -> None:
        self.net.labels = self.net.labels or class_names(records)  # the driver has compared them
        self.net.set_validation_data(records)
        self._validates = True

    def measure(self, metrics: Sequence[str], all_rows: AllRows) -> dict[str, float]:
        """Return the means; summaries such as average precision use all workers' counts."""
        means, results = self.net.measure(metrics) if self._validates else (None, {})
        for name in self.net.tested.evaluated:
            counts = all_rows(None if means is None else means.judged(name))
            if means is not None and name in results:
                results[name] = means.summary(name, [counts])
        return results

    def ranges(self) -> dict[str, tuple[float, float]]:
        ranges = {}
        for name, entry in self.net.inputs.items():
            values = np.asarray(self.net.net.blobs[name].data)
            if not entry.is_label and values.size:
                ranges[name] = float(values.min()), float(values.max())
        return ranges


@dataclass(frozen=True)
class PortableNet:
    """A net that predicts, without its weights."""

    net: Portable
    preprocessing: Preprocessing | None = None
    precision: Precision = "float32"

    @classmethod
    def of(cls, net: Net) -> PortableNet:
        return cls(portable_net(net.tested.described), net.preprocessing, net.precision)

    @property
    def key(self) -> Any:
        return self.net.text, self.preprocessing, self.precision

    def open(self, weights: NDArray, device: str | None) -> CaffeModel:
        with scratch_folder() as folder:
            net = Net(
                self.net.unpacked(Path(folder)),
                weights,
                preprocessing=self.preprocessing,
                precision=self.precision,
                device=device,
            )
            model = CaffeModel(net)
            model._alone = net.tested  # reads the folder's files
        return model
