"""Cases of kernels for narrow numbers, drawn, with slow obvious oracles."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from tests.caffe.test_precision import convolution, layer


def draw_weights(net, seed):
    rng = np.random.default_rng(seed)
    for blobs in net.params.values():
        for blob in blobs:
            blob.data[...] = rng.standard_normal(blob.data.shape)


class Picture(NamedTuple):
    """A convolution of pictures, with a ReLU or none."""

    images: int
    channels: int
    outputs: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int]
    dilation: int
    size: tuple[int, int]
    relu: bool
    seed: int

    @property
    def data(self):
        shape = (self.images, self.channels, *self.size)
        return np.random.default_rng(self.seed).standard_normal(shape).astype(np.float32)

    @property
    def text(self) -> str:
        fields = f"num_output: {self.outputs} dilation: {self.dilation} dilation: 1"
        for name, pair in (("kernel", self.kernel), ("stride", self.stride), ("pad", self.pad)):
            fields += f" {name}_h: {pair[0]} {name}_w: {pair[1]}"
        relu = layer("relu", "ReLU", "conv", "", "conv") if self.relu else ""
        return convolution("conv", "data", fields) + relu

    def finished(self, sums, bias):
        """The values of the layer, from the sums of its windows."""
        values = sums + bias.reshape(1, -1, 1, 1)
        return np.maximum(values, 0) if self.relu else values

    def sums(self, values, weights, numbers):
        """The sums of products of all windows, in such numbers."""
        rows, columns = self.kernel
        down, across = self.pad
        padded = np.pad(values, ((0, 0), (0, 0), (down, down), (across, across))).astype(numbers)
        high = (padded.shape[2] - (self.dilation * (rows - 1) + 1)) // self.stride[0] + 1
        wide = (padded.shape[3] - columns) // self.stride[1] + 1
        made = np.zeros((len(values), len(weights), high, wide), numbers)
        for y in range(rows):
            for x in range(columns):
                part = padded[:, :, y * self.dilation :: self.stride[0], x :: self.stride[1]]
                taps = weights[:, :, y, x].astype(numbers)
                made += np.einsum("nchw,oc->nohw", part[:, :, :high, :wide], taps)
        return made


@st.composite
def pictures(draw: st.DrawFn, widest: int) -> Picture:
    """Convolutions of pictures whose windows fit, with up to `widest` columns."""
    kernel = draw(st.tuples(st.integers(1, 6), st.integers(1, widest)))
    pad = draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))
    dilation = draw(st.integers(1, 2))
    size = draw(st.tuples(st.integers(1, 20), st.integers(1, 70)))
    reach = (dilation * (kernel[0] - 1) + 1, kernel[1])
    return Picture(
        images=draw(st.integers(1, 3)),
        channels=draw(st.integers(1, 5)),
        outputs=draw(st.integers(1, 70)),
        kernel=kernel,
        stride=draw(st.tuples(st.integers(1, 4), st.integers(1, 4))),
        pad=pad,
        dilation=dilation,
        size=(max(size[0], reach[0] - 2 * pad[0]), max(size[1], reach[1] - 2 * pad[1])),
        relu=draw(st.booleans()),
        seed=draw(st.integers(0, 9)),
    )


class Maxima(NamedTuple):
    """Maxima of windows of what a convolution gives, with a ReLU or none."""

    channels: int
    kernel: int
    stride: int
    pad: int
    size: tuple[int, int]
    slope: float | None

    @property
    def data(self):
        shape = (2, 3, *self.size)
        return np.random.default_rng(self.channels).standard_normal(shape).astype(np.float32)

    @property
    def text(self) -> str:
        pooling = f"kernel_size: {self.kernel} stride: {self.stride} pad: {self.pad}"
        relu = layer(
            "relu", "ReLU", "pool", f"relu_param {{ negative_slope: {self.slope} }}", "pool"
        )
        return (
            convolution("conv", "data", f"num_output: {self.channels} kernel_size: 1")
            + layer("pool", "Pooling", "conv", f"pooling_param {{ {pooling} }}")
            + ("" if self.slope is None else relu)
            + convolution("last", "pool", "num_output: 3 kernel_size: 1")
        )

    def of(self, values, shape):
        """The largest value of each window, and its ReLU."""
        pad, kernel = self.pad, self.kernel
        made = np.full(shape, -np.inf, np.float32)
        around = ((0, 0), (0, 0), (pad, pad + kernel), (pad, pad + kernel))
        padded = np.pad(values, around, constant_values=-np.inf)
        for y in range(shape[2]):
            for x in range(shape[3]):
                at = padded[:, :, y * self.stride :, x * self.stride :][:, :, :kernel, :kernel]
                made[:, :, y, x] = at.max((2, 3))
        return made if self.slope is None else np.where(made > 0, made, self.slope * made)


@st.composite
def maxima(draw: st.DrawFn) -> Maxima:
    kernel = draw(st.integers(1, 4))
    return Maxima(
        channels=draw(st.integers(1, 40)),
        kernel=kernel,
        stride=min(draw(st.integers(1, 3)), kernel),
        pad=min(draw(st.integers(0, 2)), kernel - 1),
        size=draw(st.tuples(st.integers(4, 12), st.integers(4, 12))),
        slope=draw(st.sampled_from([None, 0.0, 0.25])),
    )
