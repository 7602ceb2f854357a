"""Attacks on a live run of `train`: it ends with its weights, and the attacker with nothing."""

import os
import subprocess
import sys

import numpy as np
import pytest

from sparknet.comm.handshake import DRIVER, MESH, Caller, dial
from sparknet.comm.mesh import Listener
from sparknet.comm.rpc import Gate, Link
from sparknet.comm.wire import HMAC
from sparknet.errors import CommError, PeerLost
from sparknet.proto import parse_net
from sparknet.training.driver.run import Run
from sparknet.training.local_training import train
from sparknet.training.strategies import Averaging
from tests.comm.groups import SECRET, in_threads
from tests.goldens import ROOT
from tests.training import small
from tests.training.attacker import CHALLENGE, Attacker, Flood, Meddler, Relay, Replay, tap

STEPS = 24
ARRAYS = dict(small.records().arrays)
SOLVER = small.settings("base_lr: 1e-5")
SOLVER.net_param.CopyFrom(parse_net(small.net_text().replace("num_output: 5", "num_output: 5000")))
LARGE = 4096
"""Bytes: more than anything but weights takes at a time in this net."""


def flat(trained):
    return np.array(trained.weights.flat)


def trained(**more):
    return train(SOLVER, ARRAYS, workers=2, strategy=Averaging(2), steps=STEPS, threads=1, **more)


@pytest.fixture(scope="module")
def undisturbed():
    return flat(trained())


@pytest.fixture
def attack(monkeypatch):
    """Let an attacker into the network of the runs of this test."""
    link = Run.link
    return lambda attacker: monkeypatch.setattr(Run, "link", tap(link, attacker.address))


def test_silent_connections_at_every_port(attack, undisturbed):
    with Flood(200) as flood:
        attack(flood)
        assert np.array_equal(flat(trained()), undisturbed)
        assert set(flood.ports) == {"driver", "worker 0", "worker 1"}
        assert {flood.gains(one) for one in flood.silent} <= {0, CHALLENGE}


def test_a_handshake_between_workers_is_relayed_to_the_driver(attack, undisturbed):
    """The driver gives no proof for it, hence no weights; the worker calls again."""
    with Relay() as relay:
        attack(relay)
        assert np.array_equal(flat(trained()), undisturbed)
        assert relay.gained == [0, 0]


def test_a_call_for_the_driver_is_relayed_to_a_worker():
    """It is not taken for a worker's; nor is a call for a worker by the driver's port."""
    listener, other = Listener(), Listener()
    addresses = [listener.address, other.address]
    gate = Gate(Link("run", ("127.0.0.1", 0), SECRET, HMAC), lambda line: None)
    mesh = Caller(MESH, "run/1", 1, 0, 0)

    def relayed() -> list[str]:
        refused = []
        for port, who in ((listener.address[1], Caller(DRIVER, "run", 1)), (gate.port, mesh)):
            with Attacker() as attacker:
                front = attacker.between(port, lambda one, to=port: attacker.relay(one, to, _same))
                with pytest.raises(CommError) as error:
                    dial(("127.0.0.1", front), SECRET, who)
                refused.append(str(error.value))
        return refused

    found, refused = in_threads(
        [lambda: listener.connect(0, addresses, SECRET, 2.0, "run/1"), relayed]
    )
    gate.close()
    other.close()
    assert refused == ["the listener does not take this worker for one of its run"] * 2
    assert "did not come within 2 s" in str(found)


def _same(data: bytes, of_caller: bool) -> bytes:
    return data


def test_what_was_overheard_is_said_again(attack, undisturbed):
    """Each handshake at once, while the port is open; all of the run so far in its middle."""
    with Replay() as replay:
        attack(replay)

        def again(event):
            if event["event"] == "round" and event["round"] == 3:
                for port, said in list(replay.overheard):
                    if port == replay.ports["driver"]:
                        replay.again(port, bytes(said))

        assert np.array_equal(flat(trained(on_event=again)), undisturbed)
        assert len(replay.overheard) == 6
        assert [replay.gains(one) for one in replay.replayed] == [CHALLENGE] * 8


def flipped(data: bytes) -> bytes:
    """One bit is another."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def repeated(data: bytes) -> bytes:
    return data + data


@pytest.mark.parametrize("change", [flipped, repeated])
def test_bytes_between_workers_are_changed(attack, undisturbed, monkeypatch, tmp_path, change):
    kept = {"snapshots": tmp_path, "snapshot_every": 2}
    with Meddler(change, LARGE) as meddler:
        attack(meddler)

        def tell(event):
            if event["event"] == "round" and event["round"] == 5:
                meddler.now.set()

        said = r"worker 1 on 127\.0\.0\.1:\d+ is lost: what came over the connection was changed"
        with pytest.raises(PeerLost, match=said):
            trained(on_event=tell, **kept)
        assert meddler.done
    monkeypatch.undo()
    resumed = trained(resume=True, **kept)
    assert next(e for e in resumed.history if e["event"] == "start")["resumed"] is not None
    assert np.array_equal(flat(resumed), undisturbed)


def test_bytes_for_the_driver_are_changed(attack):
    """A bit of the trained weights."""
    with Meddler(flipped, LARGE, "driver") as meddler:
        attack(meddler)
        meddler.now.set()
        said = r"'done': what came over the connection was changed on the way \(worker 0\)"
        with pytest.raises(CommError, match=said):
            trained()
        assert meddler.done


PROGRAM = """
import sys
import numpy as np
from sparknet.training.driver.run import Run
from tests.training.attacker import tap
from tests.training.test_attacks import trained

Run.link = tap(Run.link, ("127.0.0.1", int(sys.argv[1])), files=int(sys.argv[2]))
sys.stdout.buffer.write(np.asarray(trained().weights.flat).tobytes())
"""


def test_strangers_out_of_descriptors(undisturbed):
    """Driver and workers may have 48 descriptors each, and 100 strangers are at every port."""
    with Flood(100) as flood:
        command = [sys.executable, "-c", PROGRAM, str(flood.address[1]), "48"]
        said = subprocess.run(
            ["bash", "-c", 'ulimit -S -n 48; exec "$@"', "_", *command],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            check=True,
        )
        assert set(flood.ports) == {"driver", "worker 0", "worker 1"}
        assert all(flood.gains(one) in (0, CHALLENGE) for one in flood.silent)
    assert said.stdout == undisturbed.tobytes()
