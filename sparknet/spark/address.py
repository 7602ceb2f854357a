"""The Spark session of data, and the address at which executors reach the driver."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from sparknet.errors import SparkError
from sparknet.spark.background_job import is_classic
from sparknet.spark.session import check_arrow, forget_dead_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Address = tuple[str, int]

_LOOPBACK = "127.0.0.1"


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
    """The address at which the driver listens, as executors see it."""
    if not is_classic(session):
        return _facing(session.client.host, session.client._builder.host), port
    if is_local(session):
        return _LOOPBACK, port
    return session.sparkContext.getConf().get("spark.driver.host", _LOOPBACK), port


def bind_address(session: SparkSession) -> str:
    """The address to which the driver's port is bound, and no other interface."""
    if not is_classic(session) or is_local(session):
        return driver_address(session, 0)[0]
    settings = session.sparkContext.getConf()
    address: str = settings.get("spark.driver.bindAddress", driver_address(session, 0)[0])
    return address


def is_local(session: SparkSession) -> bool:
    """Whether all tasks of a classic session run in the driver's own JVM."""
    return bool(session.sparkContext.master.partition("[")[0] == "local")


def is_encrypted(session: SparkSession) -> bool:
    """Whether Spark itself was told to encrypt what it sends."""
    settings = session.sparkContext.getConf() if is_classic(session) else session.conf
    wanted = ("spark.network.crypto.enabled", "spark.ssl.enabled", "spark.ssl.rpc.enabled")
    return any(str(settings.get(name, "false")).lower() == "true" for name in wanted)


def _facing(*hosts: str) -> str:
    """This machine's address as the server of Spark Connect sees it."""
    host = next(urlparse(f"//{host}").hostname for host in hosts if host) or "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # sends nothing
        probe.connect((host, 1))
        name: str = probe.getsockname()[0]
        return name
