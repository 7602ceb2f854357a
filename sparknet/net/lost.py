"""A loss that is no number any more: told, as the training goes on and is of no use."""

from __future__ import annotations

import warnings

from sparknet.errors import WeightsError, outside
from sparknet.weights import WeightCollection


class LossWarning(UserWarning):
    """The loss is not finite, and no later one will be."""


def warn_of_loss(loss: float, iteration: int, weights: WeightCollection) -> None:
    """Warn, and name the first layer whose weights are not finite."""
    told = "the weights are finite"
    try:
        weights.check_finite()
    except WeightsError as error:
        told = str(error)
    warnings.warn(
        f"iteration {iteration}: the loss is {loss:g}, and {told}; a smaller base_lr or "
        "clip_gradients may help",
        LossWarning,
        stacklevel=outside(),
    )
