"""The figures and tables of papers on data that two cores can train."""

from __future__ import annotations

PAGES = {
    "experiments.md": ("fawaz", "statlog", "news", "g2p"),
    "experiments-sparknet.md": (
        "figure3",
        "figure4",
        "figure4long",
        "figures5and6",
        "figures5and6_of_gpu",
    ),
    "experiments-spark.md": ("dynamic", "table2", "bigdl67", "bigdl8", "tensorspark"),
    "experiments-controls.md": ("fewer_bytes", "controls_digits", "controls_cancer"),
}
"""The pages of docs/ and their parts."""
PARTS = [part for parts in PAGES.values() for part in parts]
