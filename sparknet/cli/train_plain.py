"""`sparknet train` as `caffe train`: one process, the solver's own data, Caffe's output.

Caffe: tools/caffe.cpp, train.
"""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from sparknet.cli.interrupts import Interrupts
from sparknet.cli.settings import read_settings
from sparknet.cli.verb import WrongUse

if TYPE_CHECKING:
    from sparknet.caffe.solvers import Solver

INTERRUPTED = 130


class Stopped(Exception):
    """A signal asked to stop; the weights are those of a whole iteration."""


def train(chosen: Namespace) -> int:
    """Train; returns the exit status, 130 if a signal stopped it, after a snapshot."""
    from sparknet.caffe import get_solver
    from sparknet.caffe.solvers.nets import weight_files
    from sparknet.caffe.solvers.report import say
    from sparknet.caffe.solvers.snapshot import check_last_place
    from sparknet.devices import take_gpu
    from sparknet.weights import check_layers, open_weights

    settings = read_settings(chosen)
    wants_gpu = settings.HasField("solver_mode") and settings.solver_mode == settings.GPU
    if not chosen.gpu and wants_gpu and (told := take_gpu(settings.device_id)):
        say(f"solver_mode is GPU: {told}")
    check_last_place(settings)  # the net takes a while to build
    solver = get_solver(settings, precision=chosen.precision, keep_blobs=False)
    check_layers(solver.net, open_weights(weight_files(settings)))
    with Interrupts(chosen.sigint_effect, chosen.sighup_effect) as interrupts:
        _check_inputs(solver)
        _obey(solver, interrupts)
        try:
            say("Starting Optimization")
            solver.solve(chosen.snapshot)
        except Stopped:
            solver.snapshot_after_training()
            say("Optimization stopped early.")
            return INTERRUPTED
    return 0


def _check_inputs(solver: Solver) -> None:
    """Refuse training without a loss, or on inputs that stay zero, as caffe does silently."""
    from sparknet.caffe.idle import check_loss

    check_loss(solver.net)
    if names := solver.net.inputs:
        listed = ", ".join(f"'{name}'" for name in names)
        raise WrongUse(
            f"nothing fills the net's {'inputs' if len(names) > 1 else 'input'} {listed}",
            "name records with --data, or give a net with data layers",
        )


def _obey(solver: Solver, interrupts: Interrupts) -> None:
    """Handle signals before each iteration."""

    def look() -> None:
        if interrupts.take_snapshot():
            solver.snapshot()
        if interrupts.stop:
            raise Stopped

    solver.add_callback(look)
