"""A host on Spark that is far slower than the others: they carry its workers."""

import pytest

from sparknet.spark import Trainer
from sparknet.training import Averaging, DiLoCo
from tests.spark import recorder
from tests.spark.digits import NET, pixels, solver

pytestmark = pytest.mark.slow  # 20 s, of which the slow worker sleeps ten

STEPS, EACH, BATCH = 48, 4, 20


def fit(session, folder, slow, strategy, **more):
    """Three workers, each step of one of which takes longer; how it ended, and that process."""
    net = recorder.recorded(NET, str(folder), 0.005, slow)
    columns = {"data": "pixels", "label": "digit", "number": "number"}
    settings = {"workers": 3, "min_hosts": 2, "start_wait": 60.0, "steps": STEPS}
    trainer = Trainer(solver(net=net), strategy, columns=columns, **settings, **more)
    trained = trainer.fit(pixels(session, 200))
    (met, *_) = trained.history.of_kind("workers")
    (behind,) = trained.history.of_kind("behind")
    process = int(met["workers"][behind["worker"]]["process"])
    assert f"(process {process})" in behind["where"]
    assert trained.outcome.iteration == STEPS
    assert trained.history.of_kind("stop")[0]["reason"] == "steps"
    assert trained.outcome.samples == 3 * STEPS * BATCH
    return trained, process


@pytest.mark.parametrize(
    "strategy",
    [Averaging(EACH), DiLoCo(2 * EACH, fragments=2, overlap=1, codec="int8")],
    ids=["averaging", "streaming"],
)
def test_it_hands_in_its_third_round(session, tmp_path, strategy):
    trained, process = fit(session, tmp_path, 0.3, strategy, leave_behind=5.0)
    (left,) = trained.history.of_kind("left")
    assert f"(process {process})" in left["where"]
    assert trained.history.of_kind("lost") == []
    made = len(recorder.steps(tmp_path)[process])
    assert made in (3 * EACH, 4 * EACH)  # a round more where it is told after the others have asked
    first = trained.history.of_kind("round")[:3]
    assert [len(one["workers"]) for one in first] == [3, 3, 3]


def test_it_is_left_in_the_middle_of_its_round(session, tmp_path):
    """Its first step would take a minute; what it does counts for nothing, and its task ends."""
    slow = {"deadline": 4.0, "leave_behind": 10.0}
    trained, process = fit(session, tmp_path, 60.0, Averaging(EACH), **slow)
    (lost,) = trained.history.of_kind("lost")
    assert lost["message"] == "it was left behind"
    assert f"(process {process})" in lost["where"]
    assert process not in recorder.steps(tmp_path)
    assert trained.outcome.samples == pytest.approx(STEPS * 3 * BATCH, abs=3 * EACH * BATCH)
