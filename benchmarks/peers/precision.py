"""Which numbers our engine computes with."""

from __future__ import annotations

from inspect import signature


def precisions() -> list[str]:
    """float32, and bf16 where nets and solvers have a `precision`."""
    from sparknet.caffe import Net
    from sparknet.caffe.solvers import SGDSolver

    both = all("precision" in signature(made).parameters for made in (Net.from_proto, SGDSolver))
    return ["float32", "bf16"] if both else ["float32"]
