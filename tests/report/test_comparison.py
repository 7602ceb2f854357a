"""Sets of runs compared: means, standard errors, and what counts as a difference."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from sparknet.cli import main
from sparknet.report import RunFolder, report
from sparknet.training import Averaging, Cluster, Strategy, simulate
from sparknet.training.planning.trials import Spread, critical, difference
from tests.training import small


def by_seed(values):
    return dict(enumerate(values))


def test_a_spread_is_mean_and_standard_error():
    values = [0.91, 0.94, 0.95, 0.99]
    found = Spread.of(values)
    assert found.mean == pytest.approx(np.mean(values))
    assert found.error == pytest.approx(stats.sem(values))
    assert found.text(100, 2, " %") == "94.75 ± 1.65 %"
    assert str(found) == "0.948 ± 0.017"
    assert isnan(Spread.of([1.5]).error)
    assert str(Spread.of([1.5])) == "1.500"


@pytest.mark.parametrize("freedom", [1, 2, 2.5, 7, 19, 29.5, 30, 45, 200, np.inf])
def test_critical_values_are_students(freedom):
    assert critical(freedom) == pytest.approx(
        stats.t.ppf(0.975, freedom), rel=0.03 if freedom == 2.5 else 2e-3
    )


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.8, 1.5, 3.0])
@pytest.mark.parametrize("shares", [True, False])
def test_differences_are_seen_as_by_scipy(shift, shares):
    """Both t-tests, over many draws; borders of a hundredth are left out."""
    rng = np.random.default_rng(int(10 * shift))
    for count in (3, 5, 9):
        for _ in range(40):
            one = rng.standard_normal(count)
            other = one * shares + rng.standard_normal(count) * 0.7 + shift
            first = by_seed(one)
            second = by_seed(other) if shares else {-1 - n: v for n, v in enumerate(other)}
            found = difference(first, second)
            test = stats.ttest_rel if shares else stats.ttest_ind
            p = test(other, one, **({} if shares else {"equal_var": False})).pvalue
            assert found.paired == shares
            assert found.spread.mean == pytest.approx(other.mean() - one.mean())
            if abs(p - 0.05) > 0.012:
                assert found.is_significant == (p < 0.05), (p, found)


def test_one_run_says_nothing():
    found = difference({1: 0.5}, {1: 0.9})
    assert found.is_significant is None
    assert found.verdict == "one run says nothing of it"


def trained(folder: Path, strategy: Strategy, seeds: Sequence[int]) -> Path:
    for seed in seeds:
        listener = RunFolder(folder / f"seed {seed}", small.settings())
        simulate(
            small.settings(),
            small.records(),
            workers=2,
            strategy=strategy,
            cluster=Cluster(step=1.0),
            steps=20,
            seed=seed,
            validation=small.records(24),
            validate_every=2,
            on_event=listener,
        )
        listener.close()
    return folder


def test_sets_of_runs_are_compared_by_seed(tmp_path, capsys):
    """Rounds of twice the length send about half the bytes; equal sets show no difference."""
    short = trained(tmp_path / "short", Averaging(2), [1, 2, 3])
    again = trained(tmp_path / "again", Averaging(2), [1, 2, 3])
    long = trained(tmp_path / "long", Averaging(4), [1, 2, 3, 4])
    out = tmp_path / "page.html"
    assert main(["report", str(short), str(again), str(long), "--out", str(out)]) == 0
    told = capsys.readouterr().out.splitlines()
    lines = {tuple(line.split()[:2]): line for line in told if line}
    assert "3 pairs" in lines["again", "loss"]
    assert "no difference seen" in lines["again", "loss"]
    assert lines["long", "MB"].endswith("lower")
    text = out.read_text(encoding="utf-8")
    assert "What the runs reached" in text
    assert "no difference seen" in text


def test_other_seeds_are_not_paired(tmp_path):
    one = trained(tmp_path / "one", Averaging(2), [1, 2, 3])
    other = trained(tmp_path / "other", Averaging(2), [4, 5, 6])
    assert "not paired" in report(one, other, out=tmp_path / "page.html")
