"""LSTM, GRU, RNN and LSTMUnit, step by step (Caffe unrolls them into nets)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sparknet.torch.translations.table import (
    Tensors,
    Tops,
    Translatable,
    applied,
    matrix_product,
    translates,
)


def _sums(layer: Translatable, bottoms: Tensors, params: Tensors) -> tuple[Tensor, list[Tensor]]:
    """Return the inputs' part of each step's gates, and the weights left."""
    options = layer.options
    steps, streams = options["steps"], options["streams"]
    weights, bias, *rest = params
    x = bottoms[0].reshape(steps * streams, options["inputs"])
    sums = (matrix_product(layer, x, weights.t()) + bias).reshape(steps, streams, len(bias))
    if options["static_inputs"]:
        fixed, *rest = rest
        static = bottoms[2].reshape(streams, options["static_inputs"])
        sums = sums + static @ fixed.t()
    return sums, rest


def _first(layer: Translatable, bottoms: Tensors) -> list[Tensor]:
    """Return the states before the first step; no gradient reaches them."""
    options = layer.options
    shape = (options["streams"], options["num_output"])
    many = options["states"]
    if options["expose_hidden"]:
        return [one.detach().reshape(shape) for one in bottoms[len(bottoms) - many :]]
    states: list[Tensor] | None = layer.state.get("states")
    size = shape[0] * shape[1]
    if states is None or states[0].numel() < size:  # a larger memory begins with zeros, as Caffe's
        states = layer.state["states"] = [bottoms[0].new_zeros(size) for _ in range(many)]
    return [one[:size].reshape(shape).clone() for one in states]


def _last(layer: Translatable, states: list[Tensor]) -> tuple[Tensor, ...]:
    if layer.options["expose_hidden"]:
        return tuple(one.detach().unsqueeze(0) for one in states)
    for now, last in zip(states, layer.state["states"], strict=True):
        last[: now.numel()].copy_(now.detach().reshape(-1))
    return ()


def _stacked(layer: Translatable, made: list[Tensor], x: Tensor) -> Tensor:
    return torch.stack(made) if made else x.new_zeros(layer.top_shapes[0]) + x.sum()


def lstm_cell(cont: Tensor, cell: Tensor, gates: Tensor) -> tuple[Tensor, Tensor]:
    """Gates in the order input, forget, output, candidate; forget counts where cont does."""
    i, f, o, g = gates.chunk(4, -1)
    cell = applied(_Forget, cont, f) * cell + torch.sigmoid(i) * torch.tanh(g)
    return cell, torch.sigmoid(o) * torch.tanh(cell)


class _Forget(torch.autograd.Function):
    """cont times the gate, with the gradient of lstm_unit_layer.cpp for a cont in fractions."""

    @staticmethod
    def forward(ctx: Any, cont: Tensor, sums: Tensor) -> Tensor:
        gate = torch.where(cont == 0, torch.zeros_like(sums), cont * torch.sigmoid(sums))
        ctx.save_for_backward(gate)
        return gate

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[None, Tensor]:
        (gate,) = ctx.saved_tensors
        return None, given * gate * (1 - gate)


@translates("LSTM", without_gradient={1: "sequence indicators"})
def lstm(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    sums, (recur,) = _sums(layer, bottoms, params)
    hidden, cell = _first(layer, bottoms)
    outputs = []
    for step, marks in zip(sums, bottoms[1].unsqueeze(-1), strict=True):
        gates = step + matrix_product(layer, marks * hidden, recur.t())
        cell, hidden = lstm_cell(marks, cell, gates)
        outputs.append(hidden)
    return (_stacked(layer, outputs, bottoms[0]), *_last(layer, [hidden, cell]))


@translates("RNN", without_gradient={1: "sequence indicators"})
def rnn(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    sums, (recur, out, bias) = _sums(layer, bottoms, params)
    (hidden,) = _first(layer, bottoms)
    outputs = []
    for step, marks in zip(sums, bottoms[1].unsqueeze(-1), strict=True):
        hidden = torch.tanh(step + matrix_product(layer, marks * hidden, recur.t()))
        outputs.append(hidden)
    y = torch.tanh(matrix_product(layer, _stacked(layer, outputs, bottoms[0]), out.t()) + bias)
    return (y, *_last(layer, [hidden]))


@translates("GRU", without_gradient={1: "sequence indicators"})
def gru(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    """Compute gates in the order update, reset, candidate; reset before or after its product."""
    sums, (recur, bias) = _sums(layer, bottoms, params)
    units, after = layer.options["num_output"], layer.options["reset_after"]
    (hidden,) = _first(layer, bottoms)
    outputs = []
    for step, marks in zip(sums, bottoms[1].unsqueeze(-1), strict=True):
        before = marks * hidden
        more = matrix_product(layer, before, (recur if after else recur[: 2 * units]).t())
        update, reset = torch.sigmoid(step[:, : 2 * units] + more[:, : 2 * units]).chunk(2, -1)
        if after:
            inner = reset * (more[:, 2 * units :] + bias)
        else:
            inner = matrix_product(layer, reset * before, recur[2 * units :].t()) + bias
        candidate = torch.tanh(step[:, 2 * units :] + inner)
        hidden = (1 - update) * candidate + update * before
        outputs.append(hidden)
    return (_stacked(layer, outputs, bottoms[0]), *_last(layer, [hidden]))


@translates("LSTMUnit", without_gradient={2: "sequence indicators"})
def lstm_unit(layer: Translatable, bottoms: Tensors, params: Tensors) -> Tops:
    cell, gates, cont = bottoms
    return lstm_cell(cont.unsqueeze(-1), cell, gates)
