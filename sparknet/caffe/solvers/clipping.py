"""Gradient clipping by the norm of all gradients.  Caffe: SGDSolver::ClipGradients."""

from __future__ import annotations

import numpy as np


def clip_factor(limit: float, norm: float) -> float:
    """Return the factor that brings gradients of a norm down to a limit; 1 where they are below."""
    return float(np.float32(limit) / np.float32(norm)) if norm > limit else 1.0
