"""The pass of one layer: by PyTorch, by the native engine, or a no-op."""

from __future__ import annotations

from typing import Any

import torch
import torch.fx.experimental.symbolic_shapes
from torch import Tensor

from sparknet.errors import LayerError
from sparknet.layers.layer import count
from sparknet.native import NDArray
from sparknet.torch.layer import SOURCES, TorchBlob, TorchLayer
from sparknet.torch.random import seed_of_first_layer


def bind(layer: TorchLayer) -> None:
    """Let the tops be the first bottom (Caffe: ShareData)."""
    bottom = layer.bottoms[0]
    for top in layer.tops:
        top.data = bottom.data
        if layer.type not in ("Split", "RecordWeights"):
            top.diff = bottom.diff
    if layer.type == "RecordWeights":
        layer.tops[0].weights = layer.bottoms[1]


def _refuse_gone(layer: TorchLayer) -> None:
    for bottom in layer.bottoms:
        if bottom.data.gone:
            layer.refuse(
                f"the values of '{bottom.name}' were given back after their last reader: start "
                "the pass earlier, or make the net with keep_blobs=True"
            )


def forward(layer: TorchLayer, shares: bool) -> None:
    """Compute a layer's tops; with ``shares`` blobs are given back after their last reader."""
    if shares:
        _refuse_gone(layer)
        for top in layer.tops:  # zeros, unless a layer above computes them
            top.diff.gone = False
    if layer.type in SOURCES or layer.is_view:
        return
    if layer.native is not None:
        layer.native.forward()
        return
    assert layer.translation is not None
    layer.record = None
    notes = layer.backward
    in_place = notes and any(top.data.is_fixed for top in layer.tops)
    with torch.set_grad_enabled(notes):
        bottoms = []
        for number, bottom in enumerate(layer.bottoms):
            values = bottom.values().detach()
            if in_place and any(top.data is bottom.data for top in layer.tops):
                values = values.clone()  # the gradient needs what will be overwritten
            propagates = notes and layer.propagate[number]
            bottoms.append(values.requires_grad_() if propagates else values)
        params = [
            values.requires_grad_(notes and learns)
            for values, learns in zip(layer.factors, layer.learns, strict=True)
        ]
        inputs = bottoms if layer.translation.narrow else [_wide(one) for one in bottoms]
        computed = layer.translation.compute(layer, inputs, params)
    tops: list[Tensor] = list(computed) if isinstance(computed, tuple) else [computed]
    if layer.translation.writes_params:
        for param in layer.params:
            param.flat.changed()
    theirs = {id(blob.data): values for blob, values in zip(layer.bottoms, bottoms, strict=True)}
    for top, values in zip(layer.tops, tops, strict=True):
        if tuple(values.shape) != top.shape:
            top.reshape(tuple(values.shape), keep=False)
        top.data.write(_own(layer, values.detach(), theirs.values()))
    if notes:
        layer.record = (tops, bottoms, params)


def _wide(values: Tensor) -> Tensor:
    return values.float() if values.dtype == torch.bfloat16 else values


def _refuse_gone_gradients(layer: TorchLayer) -> None:
    for top in layer.tops:
        if top.diff.gone:
            layer.refuse(
                f"the gradients of '{top.name}' were given back after their last reader: begin "
                "with the forward pass of the whole net, or make the net with keep_blobs=True"
            )


def _give_back_gradients(layer: TorchLayer) -> None:
    """Give back what only this layer's pass back has read."""
    layer.record = None
    below = [bottom.diff for bottom in layer.bottoms]
    for top, weight in zip(layer.tops, layer.loss_weights, strict=True):
        if not (top.wanted or weight or any(top.diff is diff for diff in below)):
            top.diff.drop()


def backward(layer: TorchLayer, shares: bool) -> None:
    """Compute a layer's gradients, in its bottoms and parameters."""
    if shares:
        _refuse_gone_gradients(layer)
    _run_backward(layer, shares)
    if shares:
        _give_back_gradients(layer)


def _run_backward(layer: TorchLayer, shares: bool) -> None:
    if layer.type in SOURCES:
        return
    if layer.is_view:
        _backward_view(layer)
    elif layer.native is not None:
        layer.native.backward()
    else:
        _backward_translated(layer, shares)


def _backward_view(layer: TorchLayer) -> None:
    bottom = layer.bottoms[0]
    if layer.type == "RecordWeights":
        if layer.propagate[1]:
            layer.refuse("the weights of records take no gradient")
        weights = layer.bottoms[1].values().reshape(-1)
        sizes = [layer.options[name] for name in ("before", "records", "after")]
        spread = layer.tops[0].gradient().reshape(sizes)
        if layer.propagate[0]:
            bottom.diff.write((spread * weights[:, None]).reshape(bottom.shape))
    elif layer.type == "Split" and layer.propagate[0]:
        total, *more = [top.gradient() for top in layer.tops]
        for one in more:
            total = total + one
        bottom.diff.write(total if more else total.clone())


def _backward_translated(layer: TorchLayer, shares: bool) -> None:
    assert layer.translation is not None
    _refuse_gradients(layer)
    if layer.record is None and shares:
        blob = (*layer.tops, *layer.bottoms)[0]
        layer.refuse(
            f"the values of '{blob.name}' were given back after their last reader: "
            "begin with the forward pass of the whole net, or make the net with keep_blobs=True"
        )
    if layer.record is None:  # the forward pass has ended early
        forward(layer, shares)
        assert layer.record is not None
    tops, bottoms, params = layer.record
    leaves = [one for one in (*bottoms, *params) if one.requires_grad]
    pairs = [
        (roots, top.gradient().to(roots.dtype))
        for roots, top in zip(tops, layer.tops, strict=True)
        if roots.requires_grad
    ]
    results: list[Tensor | None] = [None] * len(leaves)
    if pairs and leaves:
        roots, top_gradients = zip(*pairs, strict=True)
        results = list(
            torch.autograd.grad(roots, leaves, top_gradients, retain_graph=True, allow_unused=True)
        )
    gradients = dict(zip(map(id, leaves), results, strict=True))
    sources = [gradient for _, gradient in pairs]
    for param, values in zip(layer.params, params, strict=True):
        gradient = gradients.get(id(values))
        if gradient is not None:
            param.take(gradient)
    for blob, values in zip(layer.bottoms, bottoms, strict=True):
        if not values.requires_grad:
            continue
        gradient = gradients.get(id(values))
        if gradient is None:
            blob.diff.fill(0.0, blob.shape)
        else:
            blob.diff.write(_own(layer, gradient, sources))


def _own(layer: TorchLayer, values: Tensor, others: Any) -> Tensor:
    """Return a copy of the values where programs write to their memory."""
    if layer.place.apart:
        return values
    memory = values.untyped_storage().data_ptr()
    if any(one.untyped_storage().data_ptr() == memory for one in others):
        return values.clone(memory_format=torch.contiguous_format)
    return values


def _refuse_gradients(layer: TorchLayer) -> None:
    """Caffe: NOT_IMPLEMENTED."""
    assert layer.translation is not None
    for number, propagates in enumerate(layer.propagate):
        if not propagates:
            continue
        name = layer.bottoms[number].name
        if layer.translation.no_gradient:
            layer.refuse(
                f"has no gradient, but one is asked for bottom '{name}'; leave force_backward out, "
                "or set propagate_down: false"
            )
        what = layer.translation.without_gradient(len(layer.bottoms)).get(number)
        if what is not None:
            layer.refuse(
                f"has no gradient for the {what}, bottom '{name}'; leave force_backward out, or "
                "set propagate_down: false for it"
            )


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
