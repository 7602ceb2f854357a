"""Resources of a training's tasks; what Spark hands out by them is in test_gpus.py."""

import inspect
from concurrent.futures import ThreadPoolExecutor

import pytest

from sparknet.errors import SparkError
from sparknet.spark.hosts.resources import TaskResources

pytest.importorskip("pyspark")


def test_what_is_no_profile(spark):
    with pytest.raises(
        SparkError, match=r"^resources must be a ResourceProfile .*, not \{'gpu': 1"
    ):
        TaskResources(spark, {"gpu": 1})


def test_a_local_session_has_none(session):
    """Spark says so itself; under Connect from any thread, of which PySpark knows one alone."""
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    takes = "profile" in inspect.signature(session.range(0).mapInArrow).parameters
    said = "^Spark refuses the resources .*: TaskResourceProfiles are" if takes else "PySpark 4"

    def refused() -> str:
        made = ResourceProfileBuilder().require(TaskResourceRequests().cpus(2)).build
        with pytest.raises(SparkError, match=said) as error:
            TaskResources(session, made)
        return str(error.value)

    with ThreadPoolExecutor() as pool:
        assert pool.submit(refused).result() == refused()
