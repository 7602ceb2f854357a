"""get_session and local_session: the current Spark session, or a local one."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import sparknet
from sparknet.errors import MissingExtra, SparkError, extra
from sparknet.spark.cluster.background_job import is_classic
from sparknet.spark.cluster.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_CONNECT = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "zstandard": "zstandard",
}


def get_session(
    workers: int | None = None,
    *,
    master: str | None = None,
    threads: int | None = None,
    name: str = "sparknet",
    config: Mapping[str, str | int | float] | None = None,
) -> SparkSession:
    """Return the session of this spark-submit or notebook, else a local one.

    ``master`` names a cluster instead: spark://…, yarn, k8s://…, or sc://… for Spark Connect.
    Then, and where SPARK_REMOTE=local[N] starts a Connect server of this machine, the executors
    start the Python at this Python's path, unless PYSPARK_PYTHON is set.
    """
    spark_session = _pyspark().SparkSession
    session_of_others = os.environ.get("PYSPARK_GATEWAY_PORT") or _is_connected()
    if master is None and not session_of_others and spark_session.getActiveSession() is None:
        return local_session(workers, threads=threads, name=name, config=config)
    builder = spark_session.builder.appName(name)
    if master is not None or os.environ.get("SPARK_REMOTE", "").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if home := java_home():
            os.environ["JAVA_HOME"] = home
    if master is not None:
        remote = master.startswith("sc://")
        if remote:
            _check_connect()
        builder = builder.remote(master) if remote else builder.master(master)
        for key, value in {} if remote else _quiet().items():
            builder = builder.config(key, value)
    for key, given_value in (config or {}).items():
        builder = builder.config(key, given_value)
    session: SparkSession = builder.getOrCreate()
    return session


def local_session(
    workers: int | None = None,
    *,
    threads: int | None = None,
    memory: str | None = None,
    name: str = "sparknet",
    config: Mapping[str, str | int | float] | None = None,
) -> SparkSession:
    """Start Spark on this machine with slots for ``workers`` tasks (default: one per core).

    The tasks run on this Python, each with its share of the cores as threads (or ``threads``),
    and all ports are on loopback.  ``memory`` is the JVM's (default: a
    quarter of the machine's, at most 8 GB; it does not hold weights and data
    that sparknet moves itself).  ``config`` adds or replaces settings.  A running session is
    returned as it is if it has the slots; one of Spark Connect is refused.
    """
    spark_session = _pyspark().SparkSession
    cores = os.cpu_count() or 1
    slots = workers or cores
    if slots < 1:
        raise SparkError(f"workers is {workers}: at least one is needed")
    if _is_connected():
        raise SparkError(
            "this process uses Spark Connect, and a local Spark cannot start beside it: take its "
            "session with get_session(), or stop it first (and unset SPARK_REMOTE)"
        )
    running = spark_session.getActiveSession()
    if running is not None:
        return _fitting(running, slots)
    os.environ["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", _LOOPBACK)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if home := java_home():
        os.environ["JAVA_HOME"] = home
    builder = spark_session.builder.appName(name)
    for key, value in (_settings(slots, threads or max(1, cores // slots), memory)).items():
        builder = builder.config(key, value)
    for key, given_value in (config or {}).items():
        builder = builder.config(key, given_value)
    session: SparkSession = builder.getOrCreate()
    return session


def has_dead_java() -> bool:
    """Return whether this process started a Java for Spark that has ended."""
    from pyspark import SparkContext

    java: Any = getattr(SparkContext._gateway, "proc", None)
    return java is not None and java.poll() is not None


def forget_dead_java() -> None:
    """Drop the session of a Java that was killed: PySpark would ask it for ever."""
    if not has_dead_java():
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    context: Any = SparkContext._active_spark_context
    if context is not None:
        context._jsc = None  # else `stop` asks Java
        context.stop()
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None


def running_session() -> SparkSession | None:
    """Return the session of this process, from any thread; None if there is none."""
    builder = _pyspark().SparkSession
    session: SparkSession | None = builder.getActiveSession()
    if session is None:
        from pyspark import SparkContext

        if SparkContext._active_spark_context is not None:
            session = builder.builder.getOrCreate()
    return session


def _pyspark() -> Any:
    with extra("pyspark", "spark", "training on Spark"):
        from pyspark import sql
    check_arrow()
    forget_dead_java()
    return sql


def check_arrow() -> None:
    """Raise MissingExtra if pyarrow cannot be imported, as one for another numpy."""
    with extra("pyarrow", "spark", "training or predicting on Spark"):
        importlib.import_module("pyarrow")


def _is_connected() -> bool:
    """Return whether this process has a session of Spark Connect, or is set to use one."""
    from pyspark.sql.utils import is_remote

    return bool(is_remote() or os.environ.get("SPARK_REMOTE"))


def _check_connect() -> None:
    """MissingExtra if a package for Spark Connect is missing; PySpark itself may exit with 0."""
    for module, package in _CONNECT.items():
        try:
            importlib.import_module(module)
        except ImportError:
            raise MissingExtra(package, "connect", "Spark Connect") from None


def _fitting(session: SparkSession, slots: int) -> SparkSession:
    context = session.sparkContext
    has = context.defaultParallelism // int(context.getConf().get("spark.task.cpus", "1"))
    if has < slots:
        raise SparkError(
            f"the Spark session that is running has {has} slots where {slots} workers are wanted: "
            "stop it first, or start it with that many"
        )
    return session


def _settings(slots: int, threads: int, memory: str | None) -> dict[str, str]:
    """local[N,F]: a task may fail F times, where local[N] allows no failure at all.

    Spark gives a Python worker as many OpenMP threads as its task has cores.
    """
    return {
        "spark.master": f"local[{slots * threads},4]",
        "spark.task.cpus": str(threads),
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.memory": memory or _driver_memory(),
        **_quiet(),
        "spark.ui.enabled": "false",
        **_daemon(),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": str(slots),
    }


def _daemon() -> dict[str, str]:
    """Ours, unless this process found sparknet where a Python that begins anew does not."""
    look = "import importlib.util; print(importlib.util.find_spec('sparknet').origin)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=False)
    is_found = done.stdout.strip() == sparknet.__file__
    return {"spark.python.daemon.module": "sparknet.spark.worker_daemon"} if is_found else {}


def _quiet() -> dict[str, str]:
    return {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        "spark.ui.showConsoleProgress": "false",
    }


def _driver_memory() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(8192, max(1024, total // 4 // 2**20))}m"


Address = tuple[str, int]


def session_of(data: Any, what: str = "the training data") -> SparkSession:
    """Return the session of a DataFrame or RDD; raise SparkError if it was stopped."""
    check_arrow()
    forget_dead_java()
    if hasattr(data, "sparkSession"):
        if _is_stopped(data.sparkSession):
            raise SparkError(f"the Spark session of {what} was stopped: make both again")
        return data.sparkSession
    if hasattr(data, "mapPartitions"):
        from pyspark.sql import SparkSession
        from pyspark.sql.utils import is_remote

        if is_remote():
            raise SparkError(f"{what} is an RDD, and Spark Connect has none: give a DataFrame")
        if data.context._jsc is None:
            raise SparkError(f"the Spark session of {what} was stopped: make both again")
        return SparkSession.builder.getOrCreate()
    raise SparkError(f"{what} is {no_data(data)}")


def _is_stopped(session: SparkSession) -> bool:
    if is_classic(session):
        return session.sparkContext._jsc is None
    return bool(session.is_stopped)


def no_data(data: Any, wanted: str = "an RDD or a DataFrame") -> str:
    """Part of a message: what ``data`` is, and what is needed instead."""
    kind = type(data)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"a {name}: {wanted} of Spark is needed (spark.createDataFrame makes one)"


def driver_address(session: SparkSession, port: int) -> Address:
    """Return the address at which the driver listens, as executors see it."""
    if not is_classic(session):
        return _facing(session.client.host, session.client._builder.host), port
    if is_local(session):
        return _LOOPBACK, port
    return session.sparkContext.getConf().get("spark.driver.host", _LOOPBACK), port


def bind_address(session: SparkSession) -> str:
    """Return the address to which the driver's port is bound, and no other interface."""
    if not is_classic(session) or is_local(session):
        return driver_address(session, 0)[0]
    settings = session.sparkContext.getConf()
    address: str = settings.get("spark.driver.bindAddress", driver_address(session, 0)[0])
    return address


def is_local(session: SparkSession) -> bool:
    """Return whether all tasks of a classic session run in the driver's own JVM."""
    return bool(session.sparkContext.master.partition("[")[0] == "local")


def is_encrypted(session: SparkSession) -> bool:
    """Return whether Spark itself was told to encrypt what it sends."""
    settings = session.sparkContext.getConf() if is_classic(session) else session.conf
    names = ("spark.network.crypto.enabled", "spark.ssl.enabled", "spark.ssl.rpc.enabled")
    return any(str(settings.get(name, "false")).lower() == "true" for name in names)


def _facing(*hosts: str) -> str:
    """This machine's address as the server of Spark Connect sees it."""
    host = next(urlparse(f"//{host}").hostname for host in hosts if host) or "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # sends nothing
        probe.connect((host, 1))
        name: str = probe.getsockname()[0]
        return name
