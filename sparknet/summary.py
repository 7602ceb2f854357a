"""The name that `sparknet.report` had until 0.2; it works for one version."""

from __future__ import annotations

from typing import Any

from sparknet import renamed, report

__all__ = report.__all__


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    renamed.warn(f"sparknet.summary.{name}", f"sparknet.report.{name}")
    return getattr(report, name)
