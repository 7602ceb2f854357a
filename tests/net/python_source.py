"""A user's data layer, as Python nets of old have it."""

from typing import Any

from sparknet import caffe
from tests.net.nets import blobs_of_three


class Points(caffe.Layer):
    """Endless batches of eight."""

    def setup(self, bottom: Any, top: Any) -> None:
        self.batch = 0

    def reshape(self, bottom: Any, top: Any) -> None:
        top[0].reshape(8, 2)
        top[1].reshape(8)

    def forward(self, bottom: Any, top: Any) -> None:
        top[0].data[...], top[1].data[...] = blobs_of_three(8, self.batch)
        self.batch += 1

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        pass
