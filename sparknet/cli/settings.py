"""The solver of `sparknet train`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from sparknet.cli import flags, net_file

if TYPE_CHECKING:
    from sparknet.proto.caffe_pb2 import SolverParameter


def read_settings(chosen: Namespace) -> SolverParameter:
    """Return the solver of -solver, changed by -model, -weights, -iterations, -level, -stage and
    --dialect."""
    from sparknet.caffe.solvers.settings import settings
    from sparknet.proto import solver_in_dialect
    from sparknet.proto.untrusted import solver_with_trust

    if is_recipe(chosen):
        solver = _recipe(chosen)
    else:
        model = net_file.open_model_file(chosen.model, chosen) if chosen.model else None
        net = (
            net_file.read_text(chosen.model, chosen.trusted, model=model) if chosen.model else None
        )
        solver = solver_with_trust(settings(chosen.solver, net), chosen.trusted)
        solver = solver_in_dialect(solver, chosen.dialect)
    solver.train_state.level = chosen.level
    solver.train_state.stage.extend(flags.stages(chosen))
    if chosen.weights or chosen.snapshot:
        # They replace those of the solver file.  Caffe: tools/caffe.cpp, train.
        del solver.weights[:]
    if chosen.weights:
        solver.weights.append(chosen.weights)
    if chosen.iterations:
        solver.max_iter = chosen.iterations
    return solver


def is_recipe(chosen: Namespace) -> bool:
    """Return whether a net that comes with its weights gets a new head."""
    head = getattr(chosen, "head", None)
    return bool(head and chosen.model and Path(chosen.model).suffix in net_file.MODELS)


def _recipe(chosen: Namespace) -> SolverParameter:
    """Return the solver, or the usual one, of a model that `sparknet.train` reads."""
    from sparknet.caffe.solvers.settings import settings
    from sparknet.net.recipe import usual

    solver = settings(chosen.solver, chosen.model) if chosen.solver else usual()
    solver.net = chosen.model
    if not solver.snapshot_prefix:
        solver.snapshot_prefix = str(Path(chosen.model).with_suffix(""))
    return solver
