"""Nets and solvers of earlier generations, upgraded as by Caffe's upgrade_proto.cpp."""

from __future__ import annotations

from sparknet.errors import SpecError
from sparknet.proto import caffe_pb2
from sparknet.proto.upgrade import fields, v0, v1
from sparknet.proto.upgrade.v0 import UpgradeWarning

__all__ = [
    "UpgradeWarning",
    "needs_upgrade",
    "solver_needs_upgrade",
    "upgrade_net",
    "upgrade_net_in_place",
    "upgrade_solver",
    "upgrade_solver_in_place",
]


def needs_upgrade(net: caffe_pb2.NetParameter) -> bool:
    """Return whether any step would change this net."""
    return bool(net.layers or net.input) or fields.has_learned_statistics(net)


def upgrade_net(net: caffe_pb2.NetParameter) -> caffe_pb2.NetParameter:
    """Return a copy in the current generation; warn of what cannot be translated."""
    upgraded = caffe_pb2.NetParameter()
    upgraded.CopyFrom(net)
    upgrade_net_in_place(upgraded)
    return upgraded


def upgrade_net_in_place(net: caffe_pb2.NetParameter) -> None:
    """`upgrade_net` without the copy."""
    if net.layers and net.layer:
        raise SpecError(
            "the net has both 'layer' and 'layers' fields: write all of them as 'layer',"
            ' with types in quotes such as type: "ReLU"'
        )
    if v0.needed(net):
        v0.upgrade(net)
    if fields.moves_transform(net):
        fields.move_transform(net)
    if net.layers:
        v1.upgrade(net)
    if net.input:
        fields.move_inputs(net)
    fields.keep_statistics(net)


def solver_needs_upgrade(solver: caffe_pb2.SolverParameter) -> bool:
    """Return whether the solver names its type by number."""
    return solver.HasField("solver_type")


def upgrade_solver(solver: caffe_pb2.SolverParameter) -> caffe_pb2.SolverParameter:
    """Return a copy in the current generation."""
    upgraded = caffe_pb2.SolverParameter()
    upgraded.CopyFrom(solver)
    upgrade_solver_in_place(upgraded)
    return upgraded


def upgrade_solver_in_place(solver: caffe_pb2.SolverParameter, path: str = "") -> None:
    """`upgrade_solver` without the copy; with the file's path, snapshots are named after it."""
    if solver.HasField("solver_type"):
        fields.name_type(solver)
    if path:
        fields.name_snapshots(solver, path)
