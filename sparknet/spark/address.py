"""Which session data belongs to, and where its executors reach the driver."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from sparknet.errors import SparkError
from sparknet.spark.job import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Address = tuple[str, int]


def session_of(data: Any, what: str = "the training data") -> SparkSession:
    """The session of a DataFrame, or the one of an RDD's context; it must not be stopped."""
    if hasattr(data, "sparkSession"):
        if _is_stopped(data.sparkSession):
            raise SparkError(f"the Spark session of {what} was stopped: make both anew")
        return data.sparkSession
    if hasattr(data, "mapPartitions"):
        from pyspark.sql import SparkSession
        from pyspark.sql.utils import is_remote

        if is_remote():
            raise SparkError(f"{what} is an RDD, and Spark Connect has none: give a DataFrame")
        if data.context._jsc is None:
            raise SparkError(f"the Spark session of {what} was stopped: make both anew")
        return SparkSession.builder.getOrCreate()
    raise SparkError(f"{what} is {no_data(data)}")


def _is_stopped(session: SparkSession) -> bool:
    if is_classic(session):
        return session.sparkContext._jsc is None
    return bool(session.is_stopped)


def no_data(data: Any, wanted: str = "an RDD or a DataFrame") -> str:
    """What something is that is no data, and what would be."""
    kind = type(data)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"a {name}: {wanted} of Spark is needed (spark.createDataFrame makes one)"


def driver_address(session: SparkSession, port: int) -> Address:
    """The address at which the driver listens, as executors see it."""
    if is_classic(session):
        return session.sparkContext.getConf().get("spark.driver.host", "127.0.0.1"), port
    return _facing(session.client.host, session.client._builder.host), port


def _facing(*hosts: str) -> str:
    """This machine's address on the way to the server of Spark Connect."""
    host = next(urlparse(f"//{host}").hostname for host in hosts if host) or "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # sends nothing
        probe.connect((host, 1))
        name: str = probe.getsockname()[0]
        return name
