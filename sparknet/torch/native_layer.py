"""A layer that torch does not compute, as a net of one layer in the native engine."""

from __future__ import annotations

from typing import Any

import torch

from sparknet.errors import LayerError
from sparknet.layers.layer import count
from sparknet.native import NDArray
from sparknet.torch.layer import TorchBlob, TorchLayer
from sparknet.torch.random import seed_of_first_layer


class NativeLayer:
    """Its blobs are copied to it and back; its parameters lie where they are."""

    def __init__(self, layer: TorchLayer, train: bool, seed: int) -> None:
        from sparknet.native.net import NativeNet

        self._layer = layer
        weights = layer.bottoms[0].weights if layer.bottoms else None
        self._at = 0 if weights is None else 1
        """The layer's number: before a loss may come the weights of its records."""
        self._net = NativeNet(train, seed_of_first_layer(seed, layer.number - self._at))
        blobs: dict[int, TorchBlob] = {id(blob): blob for blob in (*layer.bottoms, *layer.tops)}
        numbers = {key: self._net.add_blob(blob.name, blob.shape) for key, blob in blobs.items()}
        self._bottoms = [numbers[id(blob)] for blob in layer.bottoms]
        self._tops = [numbers[id(blob)] for blob in layer.tops]
        self._given = list(zip(self._bottoms, layer.bottoms, strict=True))
        if weights is not None:
            self._given += self._weigh(layer.bottoms[0], weights)
        params = [self._net.add_param(param.data, param.diff) for param in layer.params]
        try:
            self._net.add_layer(layer.type, layer.name, self._bottoms, self._tops, params)
        except Exception as error:
            raise LayerError(layer.name, f"{layer.type}: {error}") from None
        self._net.set_options(self._at, layer.options)
        self._net.set_gradients(self._at, layer.backward, layer.propagate, layer.learns)
        self._net.set_loss_weights(self._at, layer.loss_weights)
        self.set_draws(layer.random.draws)

    def _weigh(self, bottom: TorchBlob, weights: TorchBlob) -> list[tuple[int, TorchBlob]]:
        """Let the weights of records come before the first bottom; what is to be copied then."""
        whole = self._net.add_blob(f"{bottom.name} as it is", bottom.shape)
        number = self._net.add_blob(weights.name, weights.shape)
        self._net.add_layer("RecordWeights", weights.name, [whole, number], [self._bottoms[0]], [])
        axis = len(weights.shape) - 1
        sizes = [bottom.shape[:axis], bottom.shape[axis : axis + 1], bottom.shape[axis + 1 :]]
        counts = [count(shape) for shape in sizes]
        self._net.set_options(0, dict(zip(("before", "records", "after"), counts, strict=True)))
        return [(whole, bottom), (number, weights)]

    def prepare(self) -> None:
        layer = self._layer
        for number, blob in (
            *self._given,
            *zip(self._tops, layer.tops, strict=True),
        ):
            self._net.reshape_blob(number, blob.shape)
        self._net.prepare(0, self._at)

    def _in(self, number: int, blob: TorchBlob, diff: bool) -> None:
        memory = blob.diff if diff else blob.data
        array = self._net.blob_array(number, diff)
        values = memory.read(blob.shape).float().cpu()
        array.copy_from(NDArray.view(values.contiguous().numpy()))

    def _out(self, number: int, blob: TorchBlob, diff: bool) -> None:
        memory = blob.diff if diff else blob.data
        values = torch.from_numpy(self._net.blob_array(number, diff).numpy().copy())
        memory.write(values.to(self._layer.place.device))

    def _params_to_host(self) -> list[Any]:
        flats = {id(f): f for p in self._layer.params for f in (p.flat, p.flat_diff)}
        for flat in flats.values():
            flat.to_host()
        return list(flats.values())

    def forward(self) -> None:
        layer = self._layer
        flats = self._params_to_host()
        for number, blob in self._given:
            self._in(number, blob, False)
        self._net.forward(0, self._at)
        for number, blob in zip(self._tops, layer.tops, strict=True):
            shape = self._net.blob_shape(number)
            if shape != blob.shape:
                blob.reshape(shape, keep=False)
            self._out(number, blob, False)
        for flat in flats:
            flat.to_device()

    def backward(self) -> None:
        layer = self._layer
        flats = self._params_to_host()
        for number, blob in zip(self._tops, layer.tops, strict=True):
            self._in(number, blob, True)
        self._net.backward(self._at, self._at)
        for number, blob, propagates in zip(
            self._bottoms, layer.bottoms, layer.propagate, strict=True
        ):
            if propagates:
                self._out(number, blob, True)
        for flat in flats:
            flat.to_device()

    def seed(self, seed: int) -> None:
        self._net.seed(seed_of_first_layer(seed, self._layer.number - self._at))

    def draws(self) -> int:
        return self._net.draws()[self._at]

    def set_draws(self, draws: int) -> None:
        self._net.set_draws([0] * self._at + [draws])

    def methods(self) -> dict[str, str]:
        return self._net.methods(self._at)
