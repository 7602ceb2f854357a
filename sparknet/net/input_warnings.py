"""Warn once of pictures without preprocessing, and of values that preprocessing is not for."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from sparknet.errors import warn
from sparknet.layers.inputs import Input
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net.entries import Entry

Array = np.ndarray[Any, Any]
_WHITE = 255.0
_NORMALISED = 8.0
"""Pixels less their mean, divided by their deviation, are smaller."""
_FAINT = 2.0
"""A mean above this one is none of pixels from 0 to 1."""
_SMALL = 0.03
"""A scale below this one makes nothing of pixels from 0 to 1."""
_NEAR_ONE = (0.9, 1.1)
"""What white becomes where the scale makes pixels from 0 to 1."""


class RangeWarning(UserWarning):
    """Values of other sizes than those that the preprocessing of an input is for."""


class PreprocessingWarning(UserWarning):
    """Pictures of which neither the model nor the caller says what the net wants."""


def warn_of_pictures(fed: Any, names: Collection[str]) -> None:
    """Say what is assumed of the pictures for these inputs of a `FedNet`, if nothing says it."""
    if fed.knows_pictures or not names:
        return
    for entry in fed.entries:
        how = entry.pictures
        if entry.name in names and how and entry.preprocessing is None and entry.type == Input.type:
            fed.knows_pictures = True
            height, width = how.resize or entry.record[1:]
            order = "grey" if entry.record[0] == 1 else "BGR"
            warn(
                f"nothing says what happens to the pictures for '{entry.name}': they become "
                f"{height} x {width}, {order}, from 0 to 255, without a mean; give resize, color, "
                "mean, scale and std as the net was trained (docs/images.md)",
                PreprocessingWarning,
            )
            return


def warn_of_range(entry: Entry, values: Array) -> None:
    """Warn where preprocessing for pixels from 0 to 255 gets numbers that are something else."""
    how = entry.preprocessing
    if how is None or values.dtype.kind != "f" or not values.size:
        return
    means = how.mean_image if how.mean_image is not None else np.array(how.mean_values or (0.0,))
    has_mean = bool(means.max(initial=0) > _FAINT)
    scale = abs(how.scale) / min(how.std or (1.0,))
    if means.min(initial=_WHITE) < 0 or means.max(initial=0) > _WHITE:
        return
    if not has_mean and not 0 < scale < _SMALL:
        return
    low, high = float(values.min()), float(values.max())
    if low >= 0 and 0 < high <= 1:
        advice = f"multiply it by {_WHITE:g}, or leave the preprocessing out"
    elif has_mean and low < 0 and max(-low, high) <= _NORMALISED:
        advice = "it seems to have been through another preprocessing: leave one of them out"
    elif high > _WHITE + 1 and _NEAR_ONE[0] < scale * _WHITE < _NEAR_ONE[1]:
        advice = f"divide it by {high / _WHITE:.3g}, or give another scale"
    else:
        return
    warn(
        f"column '{entry.name}' has values from {low:.4g} to {high:.4g}, and its preprocessing "
        f"({_text(how)}) is for pixels from 0 to {_WHITE:g}: {advice}",
        RangeWarning,
    )


def _text(how: Preprocessing) -> str:
    values: dict[str, Any] = {"mean": how.mean_values, "scale": how.scale, "std": how.std}
    if how.mean_image is not None:
        values["mean"] = ("a picture",)
    tuples = {
        name: one if isinstance(one, tuple) else (one,) for name, one in values.items() if one
    }
    return "; ".join(
        f"{name} " + ", ".join(f"{x:.4g}" if isinstance(x, float) else str(x) for x in values)
        for name, values in tuples.items()
        if values != (1.0,)
    )
