"""Small nets and data for the tests of Net."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

LAYERS = """
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
"""
INPUTS = """
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 8 dim: 2 } } }
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 8 } } }
"""
NET = INPUTS + LAYERS


def solver_text(net=NET, **fields):
    settings = {"base_lr": 0.5, "lr_policy": '"fixed"', "random_seed": 1, **fields}
    told = " ".join(f"{name}: {value}" for name, value in settings.items())
    return f"{told} net_param {{ {net} }}"


def blobs_of_three(count=100, seed=0):
    """Points about three centres: float32 N x 2, and the number of the centre."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    centres = np.array([[0, 3], [3, -2], [-3, -2]], np.float32)
    return (centres[labels] + rng.normal(size=(count, 2))).astype(np.float32), labels
