"""A test of a net: its outputs over records, and their means."""

from __future__ import annotations

import numpy as np

from sparknet.errors import DataError, SpecError
from sparknet.net.fed import FedNet
from sparknet.net.metrics import Means
from sparknet.net.nets import Nets
from sparknet.net.scores import Scores, judged_blobs


def run_test(nets: Nets, number: int, steps: int | None, scores: Scores | None) -> Means:
    """The means of a test net's outputs, over all records or ``steps`` batches.

    ``scores`` are given the predictions beside the targets.
    """
    fed = nets.test(number)
    fed.rewind()
    limit = _limit(nets, fed, steps, number)
    nets.share(fed)
    solver = nets.description.solver
    means = Means(fed.measures, fed.evaluated, "Integral" if solver is None else solver.ap_version)
    inputs = [place.name for place in fed.places]
    judged = None if scores is None else judged_blobs(fed.described, inputs)
    blobs = judged[:2] if judged else ()
    while (limit is None or means.batches < limit) and (rows := fed.fill(endless=False)):
        made = fed.net.forward(blobs=list(blobs))
        means.add(fed.measured({name: made[name] for name in fed.net.outputs}), rows)
        if scores is not None and judged is not None:
            predictions, targets = (np.asarray(made[name]) for name in blobs)
            scores.add(predictions, targets, rows, judged.ignored)
    if not means.batches:
        raise DataError(f"the {fed.what} has come to its end")
    return means


def _limit(nets: Nets, fed: FedNet, steps: int | None, number: int) -> int | None:
    if steps is not None:
        if steps < 1:
            raise SpecError(f"test takes at least 1 step, not {steps}")
        return steps
    if fed.rows is not None and fed.rows.again:
        return None
    solver = nets.description.solver
    if solver is not None and number < len(solver.test_iter):
        return int(solver.test_iter[number])
    if fed.rows is None and any(not (one.kind.reads or one.kind.fills) for one in fed.places):
        raise DataError(f"no {fed.what} is set: set_validation_data takes the records to test")
    raise SpecError(f"the {fed.what} may have no end: say how many steps to test")
