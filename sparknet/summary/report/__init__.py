"""Report: a run, or two beside each other, as one HTML page that needs no network."""

from __future__ import annotations

from sparknet.summary.report.page import report

__all__ = ["report"]
