"""Fields of nets that moved: image settings, the net's own inputs, BatchNorm's statistics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparknet.errors import SolverError, SpecError
from sparknet.proto import caffe_pb2

_V1 = caffe_pb2.V1LayerParameter
_PARAMS: dict[int, str] = {
    _V1.DATA: "data_param",
    _V1.IMAGE_DATA: "image_data_param",
    _V1.WINDOW_DATA: "window_data_param",
}
_MOVED = ("scale", "mean_file", "crop_size", "mirror")


def moves_transform(net: caffe_pb2.NetParameter) -> bool:
    """Return whether data layers of the second generation have image settings of their own."""
    return any(param.HasField(field) for _, param in _data_layers(net) for field in _MOVED)


def move_transform(net: caffe_pb2.NetParameter) -> None:
    """Move image settings to transform_param; in a current layer these fields have no effect."""
    for layer, param in _data_layers(net):
        transform: Any = layer.transform_param
        # Caffe leaves both messages present, even where nothing moves.
        param.SetInParent()
        transform.SetInParent()
        for field in _MOVED:
            if param.HasField(field):
                setattr(transform, field, getattr(param, field))
                param.ClearField(field)


def _data_layers(net: caffe_pb2.NetParameter) -> Iterator[tuple[caffe_pb2.V1LayerParameter, Any]]:
    for layer in net.layers:
        if layer.type in _PARAMS:
            yield layer, getattr(layer, _PARAMS[layer.type])


def move_inputs(net: caffe_pb2.NetParameter) -> None:
    """Put an Input layer first. Inputs without sizes (in old model files) are just dropped."""
    if net.input_shape or net.input_dim:
        layers = [_input_layer(net), *net.layer]
        del net.layer[:]
        net.layer.extend(layers)
    for field in ("input", "input_shape", "input_dim"):
        net.ClearField(field)


def _input_layer(net: caffe_pb2.NetParameter) -> caffe_pb2.LayerParameter:
    layer = caffe_pb2.LayerParameter(name="input", type="Input", top=net.input)
    layer.input_param.SetInParent()
    count = len(net.input)
    if net.input_shape:
        _check(count, len(net.input_shape), "input_shape", 1)
        layer.input_param.shape.extend(net.input_shape[:count])
    else:
        _check(count, len(net.input_dim), "input_dim", 4)
        for first in range(0, 4 * count, 4):
            layer.input_param.shape.add(dim=net.input_dim[first : first + 4])
    return layer


def _check(inputs: int, count: int, field: str, each: int) -> None:
    if count < each * inputs:
        raise SpecError(f"{inputs} input fields need {each * inputs} {field} fields, found {count}")


def has_learned_statistics(net: caffe_pb2.NetParameter) -> bool:
    """Return whether a BatchNorm declares its three statistics as trained parameters."""
    return any(True for _ in _old(net))


def keep_statistics(net: caffe_pb2.NetParameter) -> None:
    """Keep the solver from changing the statistics."""
    for layer in _old(net):
        for param in layer.param:
            param.lr_mult = 0
            param.decay_mult = 0


def _old(net: caffe_pb2.NetParameter) -> Iterator[caffe_pb2.LayerParameter]:
    return (layer for layer in net.layer if layer.type == "BatchNorm" and len(layer.param) == 3)


_NAMES: dict[int, str] = {
    caffe_pb2.SolverParameter.SGD: "SGD",
    caffe_pb2.SolverParameter.NESTEROV: "Nesterov",
    caffe_pb2.SolverParameter.ADAGRAD: "AdaGrad",
    caffe_pb2.SolverParameter.RMSPROP: "RMSProp",
    caffe_pb2.SolverParameter.ADADELTA: "AdaDelta",
    caffe_pb2.SolverParameter.ADAM: "Adam",
}


def name_type(solver: caffe_pb2.SolverParameter) -> None:
    """Replace the number of a solver's type by its name."""
    name = _NAMES[solver.solver_type]
    if solver.HasField("type"):
        raise SolverError(
            f"the solver has both type '{solver.type}' and the old solver_type '{name}':"
            " keep one of them"
        )
    solver.type = name
    solver.ClearField("solver_type")


def name_snapshots(solver: caffe_pb2.SolverParameter, path: str) -> None:
    """Name snapshots after the solver's file without a prefix, and in a folder."""
    file = Path(path)
    if not solver.HasField("snapshot_prefix"):
        solver.snapshot_prefix = str(file.with_suffix(""))
        return
    folder = Path(solver.snapshot_prefix)
    if _is_folder(folder):
        solver.snapshot_prefix = str(folder / file.stem)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that no file system can hold
        return False
