"""Training on Spark with another pycaffe: public_caffe, which has public names alone.

That each strategy trains with it as with the embedded engine shows test_spark_strategies.py.
"""

import json
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from sparknet.errors import SparkError
from sparknet.spark import Trainer
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.gpus import device_of
from tests.net import public_caffe
from tests.spark.digits import solver
from tests.spark.java import quick
from tests.spark.test_preflight import link
from tests.spark.test_trainer import events, flat, frame

__all__ = ["link"]

NAME = public_caffe.__name__


def test_a_run_on_spark_goes_on_from_its_snapshots(session, tmp_path):
    data = frame(session, 200)
    settings = {"strategy": "slowmo", "workers": 2, "backend": NAME}
    whole = Trainer(solver(steps=40), **settings).fit(data)
    settings |= {"snapshots": str(tmp_path), "snapshot_every": 1}
    Trainer(solver(steps=20), **settings).fit(data)
    trained = Trainer(solver(steps=40), **settings).fit(data, resume=True)
    assert [event["round"] for event in events(trained, "round")] == [3, 4]
    np.testing.assert_array_equal(flat(trained), flat(whole))


def test_what_the_workers_lack_is_said_before_the_job(spark, link, monkeypatch):
    found = preflight.check(spark, 2, link, backend=NAME)
    assert [finding["backend"] for finding in found] == ["", ""]
    with pytest.raises(SparkError, match=r"^worker 0 on \S+ cannot train: backend 'tests' has no "
                       "Net, get_solver, set_mode_cpu, set_random_seed$"):  # fmt: skip
        preflight.check(spark, 2, link, backend="tests")
    here = ModuleType("driver_caffe")
    vars(here).update({name: vars(public_caffe)[name] for name in public_caffe.__all__})
    monkeypatch.setitem(sys.modules, "driver_caffe", here)
    with pytest.raises(SparkError, match="cannot train: backend 'driver_caffe' cannot be imported"):
        Trainer(solver(), workers=2, backend="driver_caffe").fit(frame(spark, 40))


def test_the_device_is_the_tasks(monkeypatch):
    from pyspark.resource import ResourceInformation

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert device_of({}) == -1
    assert device_of({"gpu": ResourceInformation("gpu", ["3", "4"])}) == 3
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert device_of({"gpu": ResourceInformation("gpu", ["3", "4"])}) == 1
    with pytest.raises(SparkError, match="gave the task a resource 'gpu' without an address"):
        device_of({"gpu": ResourceInformation("gpu", [])})


@pytest.mark.slow
def test_each_worker_chooses_its_device_once(tmp_path):
    """On executors to which Spark gives one GPU each: what is called is the same without any."""
    (tmp_path / "calls").mkdir()
    found = tmp_path / "found"
    lines = ["#!/bin/sh", "echo '" + json.dumps({"name": "gpu", "addresses": ["5", "6"]}) + "'"]
    found.write_text("\n".join(lines))
    found.chmod(0o755)
    program = f"""
from sparknet.spark import Trainer, local_session
from tests.spark.digits import solver, tuples
config = {{
    "spark.master": "local-cluster[1,2,1024]",
    "spark.executor.resource.gpu.amount": "2",
    "spark.task.resource.gpu.amount": "1",
    "spark.worker.resource.gpu.amount": "2",
    "spark.worker.resource.gpu.discoveryScript": {str(found)!r},
    "spark.executor.extraJavaOptions": {quick()!r},
    "spark.executorEnv.PUBLIC_CAFFE": {str(tmp_path / "calls")!r},
}}
spark = local_session(2, threads=1, config=config)
data = spark.sparkContext.parallelize(tuples(100), 2)
Trainer(solver(steps=20), workers=2, backend={NAME!r}).fit(data)
spark.stop()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
    calls = sorted(file.read_text() for file in (tmp_path / "calls").iterdir())
    assert calls == ["device 5\ngpu\n", "device 6\ngpu\n"]
