"""Fields of solvers that changed: the type by number, and the name of snapshots."""

from __future__ import annotations

from pathlib import Path

from sparknet.errors import SolverError
from sparknet.proto import caffe_pb2

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
