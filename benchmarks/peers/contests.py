"""The contests: nets, batches and inputs, described without any library."""

from __future__ import annotations

from dataclasses import dataclass

MOMENTUM = 0.9
DECAY = 0.0005
RATE = 1e-4
"""The learning rate; small, so that weights stay finite over many steps on one noise batch."""


@dataclass(frozen=True)
class Contest:
    """A net at a batch size."""

    name: str
    batch: int
    shape: tuple[int, ...]
    """The shape of one example; for words, the number of time steps."""
    classes: int
    scores: str
    """The blob of sparknet's net with a score for each class."""
    words: bool = False
    """Whether inputs are word numbers, time first."""

    @property
    def data_shape(self) -> tuple[int, ...]:
        return (*self.shape, self.batch) if self.words else (self.batch, *self.shape)

    @property
    def label_shape(self) -> tuple[int, ...]:
        return self.data_shape if self.words else (self.batch,)


IMAGE = (3, 224, 224)

CONTESTS = {
    contest.name: contest
    for contest in (
        Contest("lenet", 64, (1, 28, 28), 10, "ip2"),
        Contest("cifar10_quick", 100, (3, 32, 32), 10, "ip2"),
        Contest("caffenet", 32, (3, 227, 227), 1000, "fc8"),
        Contest("googlenet", 16, IMAGE, 1000, "loss3/classifier"),
        Contest("resnet50", 8, IMAGE, 1000, "fc1000"),
        Contest("mobilenet", 16, IMAGE, 1000, "fc7"),
        Contest("vgg16", 4, IMAGE, 1000, "fc8"),
        Contest("lstm_text", 100, (20,), 8801, "predict", words=True),
        Contest("mlp_tabular", 256, (1000,), 2, "ip3"),
    )
}
