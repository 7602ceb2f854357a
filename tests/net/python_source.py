"""A user's data layer, as Python nets of old have it."""

from sparknet import caffe
from tests.net.nets import blobs_of_three


class Points(caffe.Layer):
    """Endless batches of eight."""

    def setup(self, bottom, top):
        self.batch = 0

    def reshape(self, bottom, top):
        top[0].reshape(8, 2)
        top[1].reshape(8)

    def forward(self, bottom, top):
        top[0].data[...], top[1].data[...] = blobs_of_three(8, self.batch)
        self.batch += 1

    def backward(self, top, propagate_down, bottom):
        pass
