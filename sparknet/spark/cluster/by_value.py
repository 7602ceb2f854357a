"""by_value: functions that a Python without sparknet can unpickle, to say that it lacks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MISSING = (
    "the executors' Python cannot import sparknet: install it there, or send the wheel with "
    "--py-files (docs/clusters.md), or a packed environment with spark.archives and set "
    "PYSPARK_PYTHON to the Python in it"
)


def by_value(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that does what ``work`` does; ImportError in one sentence where that
    cannot be imported.

    Spark pickles a function of a module by that module's name, whose import then fails in the
    middle of its own code.  This one travels as code, with ``work`` as bytes inside.
    """
    from pyspark.cloudpickle import dumps

    data, missing = dumps(work), MISSING

    def sparknet(batches: Any) -> Any:
        import os
        import pickle

        try:
            work = pickle.loads(data)
        except ImportError as error:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            if (error.name or "sparknet").partition(".")[0] != "sparknet":
                raise ImportError(
                    f"the executors' Python cannot import '{error.name}': install it there, or "
                    "send it with addPyFile"
                ) from None
            raise ImportError(f"{missing} ({error})") from None
        return work(batches)

    sparknet.__module__ = "__main__"  # whose functions are pickled as code
    sparknet.__annotations__ = {}  # as PySpark reads them
    return sparknet
