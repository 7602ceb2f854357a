"""How an upgrade says that it left something out."""

from __future__ import annotations

import warnings


class UpgradeWarning(UserWarning):
    """Something in an old file has no counterpart in the current generation."""


def warn_dropped(message: str) -> None:
    """Say so, once for each thing left out."""
    warnings.warn(message, UpgradeWarning, stacklevel=2)
