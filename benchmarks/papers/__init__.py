"""The figures and tables of papers on data that two cores can train."""

from __future__ import annotations

PARTS = {
    "fawaz": "Fawaz et al., deep nets for time series on five data sets of the UCR archive",
    "statlog": "StatLog: letters and a satellite's pixels",
    "figure3": "SparkNet, Figure 3: speed-up over workers and steps of a round",
    "figure4": "SparkNet, Figure 4: speed-up over the cost of a synchronisation",
    "figure4long": "the same until a higher accuracy",
    "figures5and6": "SparkNet, Figures 5 and 6: accuracy over simulated time",
    "figures5and6_of_gpu": "the same with the times of an H100",
    "dynamic": "Alkhoury et al., dynamic averaging, Table I and Figures 3 to 5",
    "table2": "Alkhoury et al., dynamic averaging, Table II: Amdahl's law and the USL",
    "bigdl67": "BigDL, Figures 6 and 7: synchronisation, and throughput up to 256 nodes",
    "bigdl8": "BigDL, Figure 8: scheduling, measured on a Spark of 64 tasks",
    "tensorspark": "TensorSpark: staleness, data size and model size",
    "fewer_bytes": "loss over bytes: strategies, long rounds and codecs on a million parameters",
    "controls_digits": "every strategy against plain averaging, on digits",
    "controls_cancer": "the same on records of breast cancer",
}
"""What each part is, in the page's order."""

PAGES = {
    "experiments.md": ("fawaz", "statlog"),
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
