"""The solver's type by number, which became a name.

Caffe: upgrade_proto.cpp, UpgradeSolverType.
"""

from __future__ import annotations

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


def needed(solver: caffe_pb2.SolverParameter) -> bool:
    return solver.HasField("solver_type")


def upgrade(solver: caffe_pb2.SolverParameter) -> None:
    name = _NAMES[solver.solver_type]
    if solver.HasField("type"):
        raise SolverError(
            f"the solver has both type '{solver.type}' and the old solver_type '{name}':"
            " keep one of them"
        )
    solver.type = name
    solver.ClearField("solver_type")
