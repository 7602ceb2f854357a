"""State: where a net stands in its training, so that its equal in another process can go on."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import DataError, SpecError
from sparknet.net.net import Net

State = dict[str, Any]


def state_of(net: Net) -> State:
    """Return weights, histories, iteration, random numbers and cursor, as views of the net."""
    if not net.backend.is_embedded:
        raise SpecError(
            f"backend '{net.backend.name}' does not give its solver's state: use 'embedded'"
        )
    fed = net._nets.main
    if fed.rows is None and net.taken:
        raise DataError(
            "the net was trained on the files of its own data layers, whose cursor is not known: "
            "call set_training_data"
        )
    position = fed._stream.position if fed._stream else fed._skip
    state: State = {"weights": np.asarray(net.net.flat_params)}
    state["cursor"] = fed._seed, fed.taken, position
    state["random"] = net.net.random_state
    if net.solver is not None:
        state["histories"] = [np.asarray(history) for history in net.solver.flat_history]
        state["iteration"] = net.solver.position
    return state


def restore(net: Net, state: State) -> None:
    """Continue from another net's state; what the state lacks stays as it is."""
    if "weights" in state:
        net.net.flat_params.copy_from(state["weights"])
    if "random" in state:
        net.net.random_state = state["random"]
    if net.solver is not None and "iteration" in state:
        net.solver.seek(*state["iteration"])
        histories = state.get("histories", ())
        for mine, stored in zip(net.solver.flat_history, histories, strict=bool(histories)):
            mine.copy_from(stored)
    fed = net._nets.main
    fed._seed, fed.taken, fed._skip = state["cursor"]
    fed._stream = None
