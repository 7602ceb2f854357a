"""runner: C and S measured by tasks of Spark."""

import sparknet
from sparknet.spark import runner
from tests.training import small


def test_a_plan_is_measured_by_tasks(session):
    records = small.records().take(slice(0, small.RECORDS))
    rows = [(x.tolist(), t.tolist()) for x, t in zip(records["x"], records["t"], strict=True)]
    frame = session.createDataFrame(rows, ["x", "t"])
    made = sparknet.plan(
        small.settings(), run=runner(frame), workers=2, records=len(rows), seconds=1.0
    )
    [one] = made.measured
    assert (one.workers, one.batch) == (2, 4)
    assert 0 < one.step < 0.1
    assert 0 < one.sync < 1
    assert made.records == small.RECORDS
