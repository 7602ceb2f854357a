"""Python layers as users write them; nets name this module."""

import numpy as np

import sparknet.caffe as caffe


class Accuracy(caffe.Layer):
    """The share of rows whose largest value stands at the label."""

    def setup(self, bottom, top):
        assert len(bottom) == 2, "two bottoms are needed"

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        right = bottom[0].data.argmax(1) == bottom[1].data.ravel()
        top[0].data[0] = right.mean()

    def backward(self, top, propagate_down, bottom):
        pass


class TimesTen(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        top[0].data[...] = 10 * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        if propagate_down[0]:
            bottom[0].diff[...] = 10 * top[0].diff


class Counting(caffe.Layer):
    """A source: numbers in order, from a start that param_str gives."""

    def setup(self, bottom, top):
        self.next = int(self.param_str)
        top[0].reshape(4, 2)

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        top[0].data[...] = np.arange(self.next, self.next + 8).reshape(4, 2)
        self.next += 8

    def backward(self, top, propagate_down, bottom):
        raise AssertionError("a source has nothing to give back")


class Growing(caffe.Layer):
    """A source whose batch grows by one in every pass."""

    def setup(self, bottom, top):
        self.rows = 0
        top[0].reshape(1, 3)

    def reshape(self, bottom, top):
        self.rows += 0

    def forward(self, bottom, top):
        self.rows += 1
        top[0].reshape(self.rows, 3)
        top[0].data[...] = self.rows


class Target(caffe.Layer):
    """The mean of each column, in a top whose shape `setup` gave and nobody changes."""

    def setup(self, bottom, top):
        self.reshaped = 0
        top[0].reshape(1, 3)

    def reshape(self, bottom, top):
        self.reshaped += 1

    def forward(self, bottom, top):
        assert top[0].data.shape == (1, 3)
        top[0].data[...] = bottom[0].data.mean(0)


class Pieces(caffe.Layer):
    """A column for each row of its bottom; the shape is known in forward alone."""

    def setup(self, bottom, top):
        top[0].reshape(1, 1)

    def reshape(self, bottom, top):
        pass

    def forward(self, bottom, top):
        top[0].reshape(bottom[0].shape[0], 1)
        top[0].data[...] = bottom[0].data.sum(1, keepdims=True)

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = top[0].diff


class Absolute(caffe.Layer):
    """The sum of absolute differences, as a loss."""

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        self.diff = bottom[0].data - bottom[1].data
        top[0].data[0] = np.abs(self.diff).sum()

    def backward(self, top, propagate_down, bottom):
        for number, sign in enumerate((1, -1)):
            if propagate_down[number]:
                bottom[number].diff[...] = sign * np.sign(self.diff) * top[0].diff[0]


class Shift(caffe.Layer):
    """A layer that learns: one number for each column."""

    def setup(self, bottom, top):
        self.blobs.add_blob(bottom[0].shape[1])
        self.blobs[0].data[...] = [1, 2, 3]

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data + self.blobs[0].data

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[...] += top[0].diff.sum(0)
        bottom[0].diff[...] = top[0].diff


class Phase(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape()

    def forward(self, bottom, top):
        top[0].data[()] = self.phase


class OwnError(Exception):
    """Of the user's own type."""


class Failing(caffe.Layer):
    """Fails where param_str says."""

    def _at(self, place: str) -> None:
        if self.param_str == place:
            raise OwnError(f"no luck in {place}")

    def setup(self, bottom, top):
        self._at("setup")

    def reshape(self, bottom, top):
        self._at("reshape")
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        self._at("forward")
        if self.param_str == "shape":
            top[0].data[...] = np.zeros((7, 7, 7))
        if self.param_str == "key":
            _ = {}["nothing"]
        if self.param_str == "stop":
            raise KeyboardInterrupt

    def backward(self, top, propagate_down, bottom):
        self._at("backward")


class Of2015(caffe.Layer):
    """As the layers of py-faster-rcnn's time are written; it has no backward."""

    def setup(self, bottom, top):
        assert type(bottom) is type(top) is caffe._caffe.RawBlobVec
        self.factor = {"TRAIN": 1, "TEST": 2}[str(self.phase)] * float(self.param_str_)

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        assert type(bottom) is type(top) is caffe._caffe.RawBlobVec
        assert self.phase in (caffe.TRAIN, caffe.TEST)
        top[0].data[...] = self.factor * bottom[0].data


class Square(caffe.Layer):
    """Its gradient reads the bottom; it keeps what it overwrites where it works in place."""

    def setup(self, bottom, top):
        pass

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        self.x = bottom[0].data.copy()
        top[0].data[...] = self.x**2

    def backward(self, top, propagate_down, bottom):
        if propagate_down[0]:
            bottom[0].diff[...] = 2 * self.x * top[0].diff


class Root(caffe.Layer):
    """Its gradient reads the top."""

    def setup(self, bottom, top):
        pass

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        top[0].data[...] = np.sqrt(np.abs(bottom[0].data) + 1)

    def backward(self, top, propagate_down, bottom):
        if propagate_down[0]:
            bottom[0].diff[...] = np.sign(bottom[0].data) * top[0].diff / (2 * top[0].data)
