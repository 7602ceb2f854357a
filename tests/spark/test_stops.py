"""Workers of Spark that are all stopped, and a line to the driver that is cut: what fit says."""

import os
import signal

import numpy as np
import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from sparknet.training.driver.run import Run
from tests.spark.digits import fitted, flat
from tests.spark.saboteur import Saboteur, at_round, go_on
from tests.training import attacker as attackers
from tests.training.attacker import Cut, tap

pytestmark = pytest.mark.slow

DEADLINE = 4.0


def events(trained, kind):
    return [event for event in trained.history if event["event"] == kind]


def is_resumed(trained):
    return [bool(event["resumed"]) for event in events(trained, "start")] == [False, True]


def test_all_workers_are_stopped_and_go_on_later(spark, tmp_path):
    """Spark hears nothing of it; the driver names one, and the run goes on when they do."""

    def stop(saboteur: Saboteur) -> None:
        for process in saboteur.workers.values():
            os.kill(process, signal.SIGSTOP)

    saboteur = Saboteur(stop, at_round(3))

    def hear(event):
        saboteur(event)
        if event["event"] == "failure" and "no heartbeat for 4 s" in event["message"]:
            for process in saboteur.workers.values():
                go_on(process)

    whole = flat(fitted(spark))
    trained = fitted(
        spark, deadline=DEADLINE, on_event=hear, snapshots=str(tmp_path), snapshot_every=2
    )
    assert saboteur.done
    assert is_resumed(trained)
    assert np.array_equal(flat(trained), whole)


def test_the_line_of_a_worker_is_cut(spark, tmp_path, monkeypatch):
    """Its third caller is a worker; those before it were of the preflight."""
    whole = flat(fitted(spark))
    cloudpickle.register_pickle_by_value(attackers)
    try:
        with Cut("driver", 2) as cut:
            monkeypatch.setattr(Run, "link", tap(Run.link, cut.address))

            def tell(event):
                if (event["event"], event.get("round")) == ("round", 3):
                    cut.now.set()

            kept = {"snapshots": str(tmp_path), "snapshot_every": 2}
            trained = fitted(spark, deadline=DEADLINE, on_event=tell, **kept)
            assert cut.swallowed
    finally:
        cloudpickle.unregister_pickle_by_value(attackers)
    assert is_resumed(trained)
    assert np.array_equal(flat(trained), whole)
