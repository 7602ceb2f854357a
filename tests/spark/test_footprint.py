"""The memory that training takes, and a limit that does not leave it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparknet.net import Net
from sparknet.spark.cluster.probe import footprint
from tests.spark.digits import solver

MIB = 1 << 20
THREADS = 256 * MIB


@pytest.mark.parametrize(("kind", "histories"), [("SGD", 1), ("Adam", 2)])
def test_what_a_net_takes_at_the_least(kind, histories):
    net = Net(solver(more=f"type: '{kind}'"))
    parameters = 8 * 9 + 8 + 4 * 8 * 16 + 4
    waiting = 20 * 36 + 20 * 8 * 16
    assert footprint(net) == 4 * ((3 + histories) * parameters + waiting) + THREADS


TWICE = """
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 5 dim: 7 } } }
layer { name: "fixed" type: "InnerProduct" bottom: "x" top: "y" param { lr_mult: 0 }
  param { lr_mult: 0 } inner_product_param { num_output: 11 } }
layer { name: "a" type: "InnerProduct" bottom: "y" top: "a" inner_product_param { num_output: 3 } }
layer { name: "b" type: "InnerProduct" bottom: "y" top: "b" inner_product_param { num_output: 3 } }
layer { name: "loss" type: "EuclideanLoss" bottom: "a" bottom: "b" top: "loss" }
"""


def test_values_that_two_layers_read_count_once_and_those_of_a_frozen_one_do_not():
    net = Net(f"net_param {{ {TWICE} }} base_lr: 0.1 lr_policy: 'fixed'")
    parameters = 7 * 11 + 11 + 2 * (11 * 3 + 3)
    assert footprint(net) == 4 * ((3 + 1) * parameters + 5 * 11) + THREADS


LIMITED = """
import json
from sparknet.comm.handshake import make_secret
from sparknet.comm.rpc import Link
from sparknet.comm.wire import HMAC
from sparknet.errors import SparkError
from sparknet.spark import Trainer, local_session
from sparknet.spark.cluster import preflight
from sparknet.training.driver.driver import Driver
from tests.spark.digits import pixels, solver

spark = local_session(1, config={"spark.executor.pyspark.memory": "700m"})
link = Link("", ("127.0.0.1", 0), make_secret(), HMAC)
with Driver(link, memoryview(b""), None, print) as driver:
    [found] = preflight.check(spark, 1, driver.link, needed=1 << 20)
said = []
try:
    columns = {"data": "pixels", "label": "digit"}
    Trainer(solver(), workers=1, columns=columns).fit(pixels(spark, 40))
except SparkError as error:
    said.append(str(error))
print(json.dumps({"room": found["room"], "said": said}))
"""


@pytest.mark.slow
def test_a_limit_of_sparks_is_named_before_training():
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
