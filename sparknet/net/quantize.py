"""Net.quantize: what a net's blobs are rounded to in eight bits, found on some records."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sparknet.errors import SpecError, warn
from sparknet.graph import Graph
from sparknet.layers.layer import BoxRows
from sparknet.net.backend import Backend, Embedded
from sparknet.net.description import SolverMessage
from sparknet.net.fed import FedNet
from sparknet.net.feed import reshape
from sparknet.net.rows import rows_of
from sparknet.proto import caffe_pb2

Array: TypeAlias = npt.NDArray[Any]

RECORDS = 512
"""The records that a calibration looks at, unless told otherwise."""

MOST_LOSS = 0.1
"""How far from float32's a layer's values may be in eight bits, as a share of their norm."""

FURTHER = 1.25
"""A candidate that changes fewer answers may be so many times as far away as the nearest."""

GAIN = 0.98
"""The share of the distance from float32 that a correction of biases may leave."""

CHANGED = 0.01
"""The share of records whose answer may be another one before a warning says so."""

COMPARED, COMPARED_BYTES = 512, 1 << 28
"""The most records whose outputs are compared, and the bytes of these with their inputs."""


def quantizable(backend: Backend, solver: SolverMessage | None) -> Embedded:
    """Return the backend of a net, which is refused where none multiplies in eight bits."""
    if solver is not None:
        raise SpecError("quantize a net without a solver: Net(net, weights=…)")
    if backend.precision == "bf16":
        raise SpecError("quantize a net of precision float32; this one's is bf16")
    if not isinstance(backend, Embedded):
        raise SpecError("quantize needs the embedded backend")
    if backend.device is not None:
        raise SpecError(
            f"quantize a net of the native engine; this one computes on {backend.device}"
        )
    return backend


def calibrate(
    fed: FedNet, method: str, float32: Iterable[str], most: int, most_loss: float
) -> caffe_pb2.Int8Parameter:
    """Return the steps of a net over some records; warn of lossy layers and changed answers."""
    from sparknet.caffe.int8 import METHODS, RULES, Calibration, refuse_nan

    if most < 1:
        raise SpecError(f"a calibration needs at least 1 record, not {most}")
    if method not in METHODS:
        raise SpecError(f"the method of calibration is 'auto', 'max' or 'mse'; it is {method!r}")
    looked, float32 = 0, set(float32)
    calibration: Calibration | None = None
    trial = Comparison(fed)
    for rows in _passes(fed):
        calibration = calibration or Calibration(fed.net.graph)
        values = {name: fed.net.blobs[name].data for name in calibration.blobs}
        refuse_nan({name: fed.net.blobs[name].data for name in fed.net.inputs} | values, looked)
        calibration.note(values)
        trial.keep(rows)
        looked += rows
        if looked >= most:
            break
    if calibration is None:
        raise SpecError("there are no records to calibrate on")
    rules: tuple[str, ...] = RULES if method == "auto" else (method,)
    first = calibration.done(rules[0], float32)
    if not trial.begin(first):
        if method == "auto":
            warn(
                f"this processor has no eight bits to measure with: method={rules[0]!r} is taken "
                "unmeasured"
            )
        return first
    losses = {rule: trial.losses(calibration.done(rule, float32)) for rule in rules}
    candidates: dict[str, str | dict[str, str]] = {rule: rule for rule in rules}
    if method == "auto":
        candidates["mixed"] = calibration.mixed(losses)
        losses["mixed"] = trial.losses(calibration.done(candidates["mixed"], float32))
    tried = []
    for name, candidate in candidates.items():
        lossy = {layer: off for layer, off in losses[name].items() if not off <= most_loss}
        steps = calibration.done(candidate, float32.union(lossy))
        tried.append((trial.outputs(steps), steps, lossy))
    if method == "auto":
        plain, steps, lossy = _best(tried)
        steps = trial.corrected(steps)
        loss = trial.outputs(steps)
        if loss.off < GAIN * plain.off:  # these records decided it, and it must help others
            tried.append((loss, steps, lossy))
    loss, steps, lossy = _best(tried)
    for layer, off in sorted(lossy.items()):
        warn(
            f"layer '{layer}' stays in float32: in eight bits its values are "
            f"{off:.0%} off, more than {most_loss:.0%}"
        )
    if loss.off > most_loss or loss.changed > CHANGED * loss.records:
        warn(f"eight bits change the net's answers: {loss}")
    return steps


@dataclass
class Lost:
    """What a net's outputs lose in eight bits."""

    output: str = ""
    off: float = 0.0
    """How far the output that loses most is from float32's, as a share of its norm."""
    changed: int = 0
    """Records whose largest value is another one."""
    records: int = 0

    def __str__(self) -> str:
        text = f"output '{self.output}' is {self.off:.1%} off"
        if self.changed:
            text += f", and for {self.changed} of {self.records} records another value is largest"
        return f"{text}; a smaller most_loss=, exclude= or precision='bf16' loses less"


Candidate: TypeAlias = tuple[Lost, caffe_pb2.Int8Parameter, dict[str, float]]
"""What the outputs lose by some steps, the steps, and what lossy layers in float32 would lose."""


class Comparison:
    """A net of eight bits beside that of float32, over the newest records of a calibration."""

    def __init__(self, fed: FedNet) -> None:
        self._fed = fed
        self._batches: deque[tuple[int, dict[str, Any], dict[str, Any]]] = deque()
        self._narrow: Any = None

    def keep(self, rows: int) -> None:
        """Remember the batch that the net of float32 has just run, and forget the oldest."""
        net = self._fed.net
        inputs = {name: np.array(net.blobs[name].data) for name in net.inputs}
        outputs = {
            name: np.array(net.blobs[name].data)
            for name in _compared(net.graph)
            if name not in inputs
        }
        self._batches.append((rows, inputs, outputs))
        while len(self._batches) > 1 and (
            sum(batch[0] for batch in self._batches) > COMPARED
            or sum(a.nbytes for _, *both in self._batches for one in both for a in one.values())
            > COMPARED_BYTES
        ):
            self._batches.popleft()

    def begin(self, given: caffe_pb2.Int8Parameter) -> bool:
        """Build the net of eight bits; False where the processor has none."""
        from sparknet.caffe import Net as CaffeNet

        net, message = self._fed.net, caffe_pb2.NetParameter()
        message.CopyFrom(net.graph.parameter)
        message.int8_param.CopyFrom(given)
        self._narrow = CaffeNet.from_proto(message, precision="int8", params=net.flat_params)
        return bool(self._narrow.precision == "int8")

    def losses(self, given: caffe_pb2.Int8Parameter) -> dict[str, float]:
        """Return how far each int8 layer alone is from float32, as a share of its norm."""
        from sparknet.caffe.int8 import multiplying

        net, narrow = self._fed.net, self._narrow
        narrow.use_int8(given)
        _, inputs, _ = self._batches[-1]
        for one in (net, narrow):
            _run(one, inputs)
        losses, numbers = {}, multiplying(net.graph, given)
        nodes = [net.graph.nodes[number] for number in numbers]
        # Each layer runs alone, and what stands behind it in place does not run again.
        names = net.graph.blob_names
        inputs_of_layers = {names[blob] for node in nodes for blob in node.bottom_ids}
        values = {name: np.array(net.blobs[name].data) for name in inputs_of_layers}
        for number, node in zip(numbers, nodes, strict=True):
            for one in (net, narrow):
                for name in (names[blob] for blob in node.bottom_ids):
                    one.blobs[name].data[...] = values[name]
                one._forward(number, number)
            tops = [names[blob] for blob in node.top_ids]
            want = np.concatenate([np.ravel(net.blobs[name].data) for name in tops])
            narrow_values = np.concatenate([np.ravel(narrow.blobs[name].data) for name in tops])
            losses[node.name] = _off(narrow_values, want)
        return losses

    def corrected(self, steps: caffe_pb2.Int8Parameter) -> caffe_pb2.Int8Parameter:
        """Return steps with biases that restore each output's mean (Nagel et al. 2019)."""
        from sparknet.caffe.int8 import multiplying

        net, narrow = self._fed.net, self._narrow
        narrow.use_int8(steps)
        names, numbers = net.graph.blob_names, set(multiplying(net.graph, steps))
        biases: dict[str, Array] = {}
        records = 0
        for rows, inputs, _ in self._batches:
            records += rows
            for one in (net, narrow):
                _fill(one, inputs)
            for number, node in enumerate(net.graph.nodes):
                for one in (net, narrow):
                    one._forward(number, number)
                tops = [names[blob] for blob in node.top_ids]
                if number not in numbers or not net.blobs[tops[0]].count:
                    continue
                axis = int(node.plan.values["axis"])
                wide, own = (_means(one, tops, axis) for one in (net, narrow))
                bias = biases.get(node.name, np.zeros(len(own)))
                bias = biases[node.name] = bias + (wide - own - bias) * (rows / records)
                for top in tops:
                    np.moveaxis(narrow.blobs[top].data, axis, -1)[...] += bias
        corrected = caffe_pb2.Int8Parameter()
        corrected.CopyFrom(steps)
        for name, bias in biases.items():
            if np.isfinite(bias).all():
                corrected.bias.add(layer=name, value=bias.tolist())
        return corrected

    def outputs(self, given: caffe_pb2.Int8Parameter) -> Lost:
        """Return what the net's outputs lose over the batches."""
        self._narrow.use_int8(given)
        narrow: dict[str, list[Any]] = {}
        wide: dict[str, list[Any]] = {}
        for _, inputs, outputs in self._batches:
            _run(self._narrow, inputs)
            for name, values in outputs.items():
                wide.setdefault(name, []).append(values)
                narrow.setdefault(name, []).append(np.array(self._narrow.blobs[name].data))
        loss = Lost(records=sum(rows for rows, _, _ in self._batches))
        for name in wide:
            off = _off(
                *(np.concatenate([np.ravel(one) for one in of[name]]) for of in (narrow, wide))
            )
            if off >= loss.off:
                loss.output, loss.off = name, off
            if all(
                one.ndim > 1 and one[0].size > 1 == one[0].size // one.shape[1]
                for one in wide[name]
            ):
                pairs = zip(narrow[name], wide[name], strict=True)
                changed = sum(int((a.argmax(1) != b.argmax(1)).sum()) for a, b in pairs)
                loss.changed = max(loss.changed, changed)
        return loss


def _best(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate that changes fewest answers of those that are about as near as any."""
    nearest = min(loss.off for loss, _, _ in candidates)
    return min(
        (one for one in candidates if one[0].off <= FURTHER * nearest),
        key=lambda one: (one[0].changed, one[0].off),
    )


def _compared(graph: Graph) -> Iterator[str]:
    """Yield the outputs, and in place of boxes, of which there is any number, what makes them."""
    numbered = {
        top: node for node in graph.nodes if isinstance(node.layer, BoxRows) for top in node.tops
    }
    for name in graph.outputs:
        if name in numbered:
            yield from (graph.blob_names[blob] for blob in numbered[name].bottom_ids)
        else:
            yield name


def _passes(fed: FedNet) -> Iterator[int]:
    """Run a net over its data, each batch in its records' own shape; yields their numbers."""
    if fed.rows is None:
        while rows := fed.fill():
            fed.net.forward()
            yield rows
        return
    size = fed.batch
    for block in fed.rows.blocks(size, size, 0):
        fed.check_columns(block)
        for first in range(0, rows_of(block), size):
            fed.forward({k: v[first : first + size] for k, v in block.items()}, None)
            yield min(size, rows_of(block) - first)


def _run(net: Any, inputs: dict[str, Any]) -> None:
    _fill(net, inputs)
    net.forward()


def _fill(net: Any, inputs: dict[str, Any]) -> None:
    reshape(net, {name: values.shape for name, values in inputs.items()})
    for name, values in inputs.items():
        net.blobs[name].data[...] = values


def _means(net: Any, tops: Sequence[str], axis: int) -> Array:
    """Return the mean of each index of an axis over several blobs."""
    rows = [np.moveaxis(net.blobs[top].data, axis, 0) for top in tops]
    means = [row.reshape(len(row), -1).mean(1, dtype=np.float64) for row in rows]
    return np.asarray(np.mean(means, 0))


def _off(made: Any, want: Any) -> float:
    """Return the distance between two arrays, as a share of the norm of the second."""
    norm = float(np.linalg.norm(want))
    return float(np.linalg.norm(made - want)) / norm if norm > 0 else 0.0


def in_int8(
    described: caffe_pb2.NetParameter, net: Any, arrays: Sequence[Sequence[Any]]
) -> caffe_pb2.NetParameter:
    """Return a description with the steps of a quantised net, for `write_model`."""
    steps = getattr(net, "int8_param", None)
    if steps is None:
        return described
    from sparknet.caffe.int8 import mark_weights

    message = caffe_pb2.NetParameter()
    message.CopyFrom(described)
    message.int8_param.CopyFrom(steps)
    for layer, own in zip(message.layer, arrays, strict=True):
        del layer.blobs[:]
        for array in own:
            layer.blobs.add().shape.dim.extend(array.shape)
    mark_weights(net.graph, message, arrays)
    return message
