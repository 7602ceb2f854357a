"""Policies of our own, against what PyTorch's schedulers gave (torch 2.14, SGD at lr=0.4)."""

from __future__ import annotations

import numpy as np
import pytest

from sparknet.caffe.solvers.rate import learning_rate
from sparknet.errors import SolverError
from sparknet.proto import parse_solver
from sparknet.proto.solver import check_step

PYTORCH = {
    "lr_policy: 'onecycle' max_iter: 20": (  # OneCycleLR(0.4, total_steps=20)
        "0.016 0.052668737 0.148668737 0.267331263 0.363331263 0.4 0.394985602 0.380193853 "
        "0.356366471 0.324698262 0.286777201 0.244504809 0.2000008 0.155496791 0.113224399 "
        "0.075303338 0.043635129 0.019807747 0.005015998"
    ),
    # pct_start=0.25, div_factor=8, final_div_factor=5
    "lr_policy: 'onecycle' max_iter: 20 warmup_iter: 5 warmup_start_lr: 0.05 min_lr: 0.01": (
        "0.05 0.101256313 0.225 0.348743687 0.4 0.395738782 0.383141364 0.362758314 0.335480468 "
        "0.3025 0.265258314 0.22538305 0.18461695 0.144741686 0.1075 0.074519532 0.047241686 "
        "0.026858636 0.014261218"
    ),
    "lr_policy: 'cosine' max_iter: 12 min_lr: 0.05": (  # CosineAnnealingLR(12, 0.05)
        "0.4 0.39403702 0.376554446 0.348743687 0.3125 0.270293333 0.225 0.179706667 0.1375 "
        "0.101256313 0.073445554 0.05596298 0.05"
    ),
    # LinearLR(0.25, 1, 4), then CosineAnnealingLR(8)
    "lr_policy: 'cosine' max_iter: 12 warmup_iter: 4 warmup_start_lr: 0.1": (
        "0.1 0.175 0.25 0.325 0.4 0.384775907 0.341421356 0.276536686 0.2 0.123463314 0.058578644 "
        "0.015224093"
    ),
}


@pytest.mark.parametrize("text", PYTORCH)
def test_rates_as_pytorch_has_them(text: str) -> None:
    solver = parse_solver(f"base_lr: 0.4 {text}")
    check_step(solver)
    wanted = [float(one) for one in PYTORCH[text].split()]
    found = [learning_rate(solver, iteration, 0) for iteration in range(len(wanted))]
    np.testing.assert_allclose(found, wanted, rtol=2e-6)


@pytest.mark.parametrize("policy", ["cosine", "onecycle"])
def test_behind_the_end_and_without_one(policy: str) -> None:
    solver = parse_solver(f"base_lr: 0.4 lr_policy: '{policy}' max_iter: 9 min_lr: 0.1")
    assert learning_rate(solver, 9, 0) == learning_rate(solver, 99, 0) == np.float32(0.1)
    solver.max_iter = 1
    assert np.isfinite(learning_rate(solver, 0, 0))
    solver.max_iter = 0
    with pytest.raises(SolverError, match=f"max_iter is 0, but lr_policy '{policy}' ends there"):
        check_step(solver)
