"""Attacks on a live `Trainer.fit`: it ends with its weights, and the attacker with nothing."""

import numpy as np
import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from sparknet.training.driver.run import Run
from tests.spark.digits import fitted, flat
from tests.training import attacker as attackers
from tests.training.attacker import CHALLENGE, Flood, Meddler, tap

pytestmark = pytest.mark.slow

SMALL = 512
"""Bytes: less than the weights for the other worker, more than what else is said in a round."""


@pytest.fixture
def attack(monkeypatch):
    """Let an attacker into the network of the runs of this test; the workers lack its module."""
    link = Run.link
    cloudpickle.register_pickle_by_value(attackers)
    yield lambda attacker: monkeypatch.setattr(Run, "link", tap(link, attacker.address))
    cloudpickle.unregister_pickle_by_value(attackers)


def test_silent_connections_at_every_port(spark, attack):
    undisturbed = flat(fitted(spark))
    with Flood(150) as flood:
        attack(flood)
        assert np.array_equal(flat(fitted(spark)), undisturbed)
        assert set(flood.ports) == {"driver", "worker 0", "worker 1"}
        assert {flood.gains(one) for one in flood.silent} <= {0, CHALLENGE}


def test_a_bit_between_workers_is_flipped(spark, attack, tmp_path):
    """Spark starts the workers again, and they go on from the newest snapshot."""
    undisturbed = flat(fitted(spark))

    def flipped(data: bytes) -> bytes:
        return data[:-100] + bytes([data[-100] ^ 1]) + data[-99:]

    with Meddler(flipped, SMALL) as meddler:
        attack(meddler)

        def tell(event):
            if event["event"] == "round" and event["round"] == 5:
                meddler.now.set()

        trained = fitted(spark, snapshots=str(tmp_path), snapshot_every=2, on_event=tell)
        assert meddler.done
    said = [event["message"] for event in trained.history if event["event"] == "failure"]
    assert any("what came over the connection was changed on the way" in one for one in said)
    assert [event["resumed"] is None for event in trained.history if event["event"] == "start"] == [
        True,
        False,
    ]
    assert np.array_equal(flat(trained), undisturbed)
