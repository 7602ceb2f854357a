"""The same solver with another batch size, and records made up where none are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import SettingError
from sparknet.layers import LAYERS
from sparknet.loaders.records import ArrayRecords
from sparknet.net import Net
from sparknet.net.portable import portable_solver
from sparknet.proto import caffe_pb2, parse_solver
from sparknet.training.training_net import settings

_MOST_BYTES = 64 << 20


def with_batch(net: Net, batch: int) -> caffe_pb2.SolverParameter:
    """A net's solver whose training net takes batches of this size; it has no test nets."""
    solver = parse_solver(portable_solver(settings(net)).text)
    for name in ("test_net_param", "test_iter", "test_state"):
        solver.ClearField(name)
    solver.ClearField("test_interval")
    whole = solver.HasField("train_net_param")
    message = solver.train_net_param if whole else solver.net_param
    for layer in message.layer:
        places = [net.inputs[top] for top in layer.top if top in net.inputs]
        if not places or LAYERS[layer.type].field is None:
            continue
        param: Any = getattr(layer, LAYERS[layer.type].field or "")
        if LAYERS[layer.type].is_input:
            for number, shape in enumerate(param.shape):
                place = net.inputs.get(layer.top[number])
                if place is not None and shape.dim:
                    shape.dim[place.axis] = batch
        elif hasattr(param, "batch_size"):
            param.batch_size = batch
    return solver


def made_up(net: Net, count: int) -> ArrayRecords:
    """Random records of the shapes that a net takes, few enough for the memory.

    Labels are 0 or 1 by chance: what can be learned at once ends in subnormal gradients, with
    which processors are slow.
    """
    columns: dict[str, Any] = {}
    random = np.random.default_rng(0)
    for name, entry in net.inputs.items():
        shape = [size or 256 for size in entry.stored]
        if 0 in shape:
            raise SettingError(f"the shape of '{name}' is not known: give the data to plan for")
        rows = max(1, min(count, _MOST_BYTES // (4 * int(np.prod(shape, dtype=np.int64)))))
        count = min(count, rows)
        columns[name] = (shape, entry.is_label)
    return ArrayRecords(
        **{
            name: random.integers(0, 2, (count, *shape)).astype(np.float32)
            if is_label
            else random.standard_normal((count, *shape), dtype=np.float32)
            for name, (shape, is_label) in columns.items()
        }
    )
