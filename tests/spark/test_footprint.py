"""The memory that training takes, and a limit that does not leave it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparknet.net import Net
from sparknet.spark.footprint import footprint
from tests.spark.digits import solver

MIB = 1 << 20
THREADS = 256 * MIB


@pytest.mark.parametrize(("kind", "histories"), [("SGD", 1), ("Adam", 2)])
def test_what_a_net_takes_at_the_least(kind: str, histories: int) -> None:
    net = Net(solver(more=f"type: '{kind}'"))
    parameters = 8 * 9 + 8 + 4 * 8 * 16 + 4
    blobs = 20 * 36 + 20 + 20 * 8 * 16 + 20 * 4 + 1
    assert footprint(net) == 4 * ((3 + histories) * parameters + blobs) + THREADS


LIMITED = """
import json
from sparknet.dist.auth import make_secret
from sparknet.errors import SparkError
from sparknet.spark import Trainer, local_session, preflight
from sparknet.spark.control import Control
from tests.spark.digits import pixels, solver

spark = local_session(1, config={"spark.executor.pyspark.memory": "700m"})
secret = make_secret()
with Control(secret, memoryview(b""), None, print) as control:
    [found] = preflight.check(spark, 1, ("127.0.0.1", control.port), secret, needed=1 << 20)
said = []
try:
    columns = {"data": "pixels", "label": "digit"}
    Trainer(solver(), workers=1, columns=columns).fit(pixels(spark, 40))
except SparkError as error:
    said.append(str(error))
print(json.dumps({"room": found["room"], "said": said}))
"""


@pytest.mark.slow
def test_a_limit_of_sparks_is_named_before_training() -> None:
    """In a process of its own, as Spark reads the setting once."""
    pytest.importorskip("pyspark")
    if not Path("/proc/self/statm").exists():
        pytest.skip("what is left of a limit is looked up in /proc")
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout.splitlines()[-1])
    limit, left = answer["room"]
    assert limit == 700 * MIB
    assert MIB < left < THREADS
    (said,) = answer["said"]
    assert "of the 700 MiB that spark.executor.pyspark.memory allows it" in said
    assert "training takes 256 MiB at the least, and the records: give that setting more" in said
