"""Fawaz et al.: the files of series, the nets' sizes, the schedule, what the table says."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from benchmarks.papers import fawaz, fawaz_tables, ucr
from benchmarks.papers.fawaz import Plateau, Training
from sparknet import Net
from sparknet.training.planning.trials import Spread

ROWS = np.random.default_rng(0).standard_normal((22, 9)).astype(np.float32)
LABELS = np.arange(22, dtype=np.float32) % 2
SERIES = ucr.Series(ROWS, LABELS, ROWS[:6] + 0.01, LABELS[:6])


@pytest.fixture
def series(monkeypatch):
    monkeypatch.setattr(fawaz, "series", lambda name: SERIES)


def test_both_kinds_of_files(tmp_path):
    (tmp_path / "a.ts").write_text("#x\n@data\n1,2.5,3:b\n4,5,6:a\n")
    (tmp_path / "a.txt").write_text("  1.0e+00  1 2.5 3\n  0 4 5 6\n")
    for name, words in (("a.ts", ["b", "a"]), ("a.txt", ["1.0e+00", "0"])):
        rows, labels = ucr.read(tmp_path / name)
        assert (rows.tolist(), labels.tolist()) == ([[1, 2.5, 3], [4, 5, 6]], words)
    assert np.allclose(ucr.scaled(np.float32([[1, 3], [2, 2]])), [[-1, 1], [0, 0]])


@pytest.mark.usefixtures("series")
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("MLP", 9 * 500 + 2 * 500 * 500 + 3 * 500 + 500 * 2 + 2),
        ("FCN", 128 * 8 + 256 * 5 * 128 + 128 * 3 * 256 + 3 * 512 + 128 * 2 + 2),
    ],
)
def test_a_net_has_the_papers_weights(kind, count):
    net = Net(fawaz.solver(kind, "any", 1))
    statistics = sum(
        array.size
        for name, arrays in net.get_weights().items()
        if name.endswith("_norm")
        for array in arrays
    )
    assert net.get_weights().flat.size - statistics == count


@pytest.mark.usefixtures("series")
def test_an_even_convolution_begins_where_kerass_does():
    net = Net(fawaz.solver("FCN", "any", 1))
    weights = net.net.params["conv1_long"][0].data
    weights[...] = 0
    weights[0, 0, 0, 3] = 1  # of 8: three before and four behind
    rows = ROWS[:2, None, None, :]
    assert np.array_equal(net.forward({"data": rows}, ["conv1"])["conv1"][:, 0], rows[:, 0])


@pytest.mark.usefixtures("series")
@pytest.mark.parametrize("arm", ["paper", "alone", "AllReduce"])
def test_a_training_learns_its_series(arm):
    assert Training("MLP", "any", arm, 1).run(epochs=60) == 1.0


def test_the_rate_halves_where_the_loss_stands_still():
    plateau = Plateau(1.0, patience=2, least=0.3)
    assert [plateau.after(loss) for loss in (5, 4, 4, 4, 3.99995, 3, 3, 3, 3, 3)] == [
        *(1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3)
    ]


def test_what_is_within_two_standard_errors():
    published = Spread(84.3, 1.5 / sqrt(10), 10)
    ours = Spread(85.0, 1.5 / sqrt(5), 5)
    bound = 2 * 1.5 * sqrt(1 / 10 + 1 / 5)
    assert fawaz_tables.verdict(published, ours) == "yes"
    assert (
        fawaz_tables.verdict(published, replace(ours, mean=86.0))
        == f"no: +1.7, and the bound is {bound:.1f}"
    )
    assert fawaz_tables.verdict(published, Spread.of([84.0])) == "yes"
    certain = replace(published, error=0.0, count=31)
    assert fawaz_tables.verdict(published, ours, certain) == "yes"  # a bound of 0.9
    assert fawaz_tables.verdict(published, replace(ours, mean=85.3), certain).startswith("no")


@pytest.mark.usefixtures("series")
def test_an_epoch_has_each_record_once_and_its_mean_loss():
    recipe, draw = fawaz.RECIPES["MLP"], np.random.default_rng(0)
    parts = fawaz.batches(recipe, SERIES, draw)
    assert [len(rows) for rows in parts] == [2] * 11
    assert sorted(np.concatenate(parts)) == [*range(22)]
    net = Net(fawaz.solver("MLP", "any", 1))
    losses = [fawaz.train_epoch(net, SERIES, parts) for _ in range(20)]
    assert abs(losses[0] - np.log(2)) < 0.5
    assert losses[-1] < 0.5 * losses[0]


def test_the_store_has_trainings_and_the_last_times_of_an_epoch(tmp_path, monkeypatch):
    store = tmp_path / "store"
    rows = (
        '{"training": ["MLP", "Coffee", "paper", 1], "accuracy": 0.75}',
        '{"epoch": ["MLP", "Coffee"], "seconds": [1, 2]}',
        '{"epoch": ["MLP", "Coffee"], "seconds": [0.1234, 0.5]}',
    )
    store.write_text("\n".join(rows))
    monkeypatch.setattr(fawaz_tables, "STORE", store)
    assert fawaz.stored(store) == {Training("MLP", "Coffee", "paper", 1): 0.75}
    assert fawaz_tables.epoch("MLP", "Coffee") == "123.4 / 500.0"
    assert fawaz_tables.epoch("MLP", "GunPoint") == "–"
