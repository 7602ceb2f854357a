"""State dicts: a net's weights by the names that PyTorch gives those of its modules.

A layer is the module of its name.  A BatchNorm and the Scale behind it are one module.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sparknet.errors import WeightsError, outside, shown
from sparknet.graph import Graph, Node, build
from sparknet.layers import TEST
from sparknet.layers.normalization import BatchNorm
from sparknet.layers.scale import Scale
from sparknet.proto import Model, caffe_pb2, upgrade_net
from sparknet.proto.model import WeightsWarning

Array = np.ndarray[Any, Any]
_COUNTS = "num_batches_tracked"
_MOST = 5


def from_state_dict(state: Mapping[str, Any], net: caffe_pb2.NetParameter) -> Model:
    """The weights of a net, found in a state dict (or arrays) by the names of its layers."""
    graph = build(upgrade_net(net), TEST)
    left = {name: None for name in state if not name.endswith(_COUNTS)}
    described, arrays = caffe_pb2.NetParameter(name=net.name), list[list[Any]]()
    for node, parts in _parts(graph):
        names = [name for name in parts if name in state]
        if not names:
            continue
        missing = next((name for name in parts if name not in state), None)
        if missing is not None:
            raise WeightsError(node.name, f"there is '{shown(names[0])}' and no '{shown(missing)}'")
        values = [np.asarray(state[name], np.float32) for name in parts]
        for name in parts:
            left.pop(name, None)
        found = _of_statistics(node, values) if _is_norm(node) else values
        for name, value, ref in zip([*parts, _COUNTS], found, node.params, strict=False):
            if value.shape != tuple(ref.shape) and value.squeeze().shape != tuple(ref.shape):
                raise WeightsError(
                    node.name,
                    f"'{shown(name)}' is {list(value.shape)}; the layer's is {list(ref.shape)}",
                )
        described.layer.add(name=node.name, type=node.type)
        shaped = zip(found, node.params, strict=True)
        arrays.append([value.reshape(ref.shape) for value, ref in shaped])
    if not arrays:
        held = ", ".join(f"'{shown(name)}'" for name in list(state)[:_MOST])
        raise WeightsError(
            graph.name, f"no weights have the names of the net's layers; there are {held}"
        )
    if left:
        said = ", ".join(f"'{shown(name)}'" for name in list(left)[:_MOST])
        more = f" and {len(left) - _MOST} more" if len(left) > _MOST else ""
        warnings.warn(f"nothing takes {said}{more}", WeightsWarning, stacklevel=outside())
    for layer, own in zip(described.layer, arrays, strict=True):
        for array in own:
            layer.blobs.add().shape.dim.extend(array.shape)
    return Model(described, arrays)


def state_dict(model: Model, net: caffe_pb2.NetParameter | None = None) -> dict[str, Array]:
    """The weights of a model by PyTorch's names; `net` describes it, if the model does not."""
    graph = build(upgrade_net(model.net if net is None else net), TEST)
    held, found = model.by_name(), dict[str, Array]()
    for node, parts in _parts(graph):
        if node.name not in held:
            raise WeightsError(node.name, "the model has no weights for it")
        arrays = [
            np.asarray(array).reshape(ref.shape)
            for array, ref in zip(held[node.name], node.params, strict=True)
        ]
        if _is_norm(node):
            mean, variance, count = arrays
            share = 1 / count.flat[0] if count.flat[0] else 0.0
            arrays = [mean * np.float32(share), variance * np.float32(share)]
        found |= zip(parts, arrays, strict=True)
    return found


def _is_norm(node: Node) -> bool:
    return isinstance(node.layer, BatchNorm)


def _of_statistics(node: Node, values: list[Array]) -> list[Array]:
    """Mean and variance as Caffe keeps them: times what they have counted."""
    kept = float(node.plan.values["moving_average_fraction"])
    count = np.float32(1 / max(1 - kept, 2.0**-24))
    return [values[0] * count, values[1] * count, count.reshape(1)]


def _parts(graph: Graph) -> Iterator[tuple[Node, list[str]]]:
    """Each layer with weights of its own, and the names of these."""
    norms = {top: node.name for node in graph.nodes if _is_norm(node) for top in node.top_ids}
    for node in graph.nodes:
        if not any(ref.owned for ref in node.params):
            continue
        module = node.name
        if _is_norm(node):
            if len(node.params) != 3:
                raise WeightsError(module, f"{node.type} of {len(node.params)} blobs is no module")
            yield node, [f"{module}.running_mean", f"{module}.running_var"]
            continue
        if isinstance(node.layer, Scale) and node.bottom_ids[0] in norms:
            module = norms[node.bottom_ids[0]]
        if len(node.params) > 2:
            raise WeightsError(
                module, f"{node.type}: its {len(node.params)} blobs are no weight and bias"
            )
        yield node, [f"{module}.{part}" for part in ("weight", "bias")[: len(node.params)]]
