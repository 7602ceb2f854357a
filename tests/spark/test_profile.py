"""Where the time of a prediction goes: tasks measure, the driver adds up and prints."""

from types import SimpleNamespace

import pytest

from sparknet.errors import SparkError
from sparknet.predict.profile import PHASES, Profile, TaskProfile
from sparknet.report import report
from sparknet.spark import SparkModel
from sparknet.spark.predict.profiling import TasksProgress, task_accumulator
from tests.loaders.random_images import encoded

NET = """
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 2 dim: 3 dim: 16 dim: 16 } } }
layer { name: "pool" type: "Pooling" bottom: "data" top: "pool" pooling_param {
  pool: AVE global_pooling: true } }
"""


def test_tasks_measure_their_phases(spark, tmp_path):
    rows = [(encoded("RGB", 30, 40, number),) for number in range(12)]
    data = spark.createDataFrame(rows, "photo binary").repartition(2)
    model = SparkModel(NET, columns={"data": "photo"}, resize=16, interpolation="pil.box")
    assert model.profile is None
    predicted = model.transform(data, ["pool"], profile=True)
    for jobs in (1, 2):
        assert len(predicted.collect()) == 12
        assert model.profile.rows == 12 * jobs
        assert len(model.profile.tasks) == 2 * jobs
    assert set(model.profile.phases) == PHASES.keys() - {"tokens"}
    assert model.profile.phases["net"][1] == 2 * 12 * 3 * 16 * 16
    seconds = {phase: spent for phase, (spent, _) in model.profile.phases.items()}
    threads = ("input", "columns", "decoding", "resizing", "copies")
    own = sum(spent for phase, spent in seconds.items() if phase not in threads)
    assert 0.5 * model.profile.seconds < own <= model.profile.seconds
    assert "24 rows in 4 tasks" in str(model.profile)
    model.profile.save(tmp_path / "profile.json")
    report(tmp_path / "profile.json", out=tmp_path / "profile.html")
    assert "net waiting for arrays" in (tmp_path / "profile.html").read_text()


def test_a_running_prediction_says_what_is_left(capfd):
    profile = Profile("net")
    stage = SimpleNamespace(numTasks=40, numCompletedTasks=10)
    tracker = SimpleNamespace(getStageInfo={3: stage, 4: None}.get)
    progress = TasksProgress(profile, SimpleNamespace(statusTracker=lambda: tracker))
    progress.addInPlace({}, {(3, 0): TaskProfile(3, 0, 500, 2.0, {})})
    progress.addInPlace({}, {(3, 0): TaskProfile(3, 0, 600, 2.0, {})})  # the task's second attempt
    assert profile.rows == 600
    assert progress.line(3, 20.0) == "600 rows, 30 a second; 10 of 40 tasks done, about 1:00 left"
    assert progress.line(4, 20.0) == "600 rows, 30 a second"
    assert not capfd.readouterr().err


def test_connect_has_no_accumulators():
    with pytest.raises(SparkError, match="profile=True needs a classic session"):
        task_accumulator(SimpleNamespace(), Profile("net"))
