"""A layer that torch does not compute, as a net of one layer in the native engine."""

from __future__ import annotations

from typing import Any

import torch

from sparknet.errors import LayerError
from sparknet.native import NDArray
from sparknet.torch.layer import TorchBlob, TorchLayer
from sparknet.torch.random import seed_of_first_layer


class NativeLayer:
    """Its blobs are copied to it and back; its parameters lie where they are."""

    def __init__(self, layer: TorchLayer, train: bool, seed: int) -> None:
        from sparknet.native.net import NativeNet

        self._layer = layer
        self._net = NativeNet(train, seed_of_first_layer(seed, layer.number))
        blobs: dict[int, TorchBlob] = {id(blob): blob for blob in (*layer.bottoms, *layer.tops)}
        numbers = {key: self._net.add_blob(blob.name, blob.shape) for key, blob in blobs.items()}
        self._bottoms = [numbers[id(blob)] for blob in layer.bottoms]
        self._tops = [numbers[id(blob)] for blob in layer.tops]
        params = [self._net.add_param(param.data, param.diff) for param in layer.params]
        try:
            self._net.add_layer(layer.type, layer.name, self._bottoms, self._tops, params)
        except Exception as error:
            raise LayerError(layer.name, f"{layer.type}: {error}") from None
        self._net.set_options(0, layer.options)
        self._net.set_gradients(0, layer.backward, layer.propagate, layer.learns)
        self._net.set_loss_weights(0, layer.loss_weights)
        self.set_draws(layer.random.draws)

    def prepare(self) -> None:
        layer = self._layer
        for number, blob in (
            *zip(self._bottoms, layer.bottoms, strict=True),
            *zip(self._tops, layer.tops, strict=True),
        ):
            self._net.reshape_blob(number, blob.shape)
        self._net.prepare(0, 0)

    def _in(self, number: int, blob: TorchBlob, diff: bool) -> None:
        memory = blob.diff if diff else blob.data
        array = self._net.blob_array(number, diff)
        array.copy_from(NDArray.view(memory.read(blob.shape).cpu().contiguous().numpy()))

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
        for number, blob in zip(self._bottoms, layer.bottoms, strict=True):
            self._in(number, blob, False)
        self._net.forward(0, 0)
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
        self._net.backward(0, 0)
        for number, blob, propagates in zip(
            self._bottoms, layer.bottoms, layer.propagate, strict=True
        ):
            if propagates:
                self._out(number, blob, True)
        for flat in flats:
            flat.to_device()

    def seed(self, seed: int) -> None:
        self._net.seed(seed_of_first_layer(seed, self._layer.number))

    def draws(self) -> int:
        return self._net.draws()[0]

    def set_draws(self, draws: int) -> None:
        self._net.set_draws([draws])

    def methods(self) -> dict[str, str]:
        return self._net.methods(0)
