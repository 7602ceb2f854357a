"""C3D (Tran et al., 2015) and other forks that read clips."""

from __future__ import annotations

TYPES = {
    "Convolution3D": "convolution3d",
    "Deconvolution3D": "deconvolution3d",
    "Pooling3D": "pooling3d",
}
"""A layer type, and its module here."""

HOSTS: set[str] = set()
"""Those that Python computes, in `hosts`."""
