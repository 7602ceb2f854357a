"""Python workers that begin with numpy, pandas, pyarrow and sparknet in them.

Where ``spark.python.daemon.module`` names this module, as `local_session` has it, Spark starts one
such process for each executor and forks its workers from it.  Workers of PySpark's own daemon each
import these packages: more than a second of a core for each slot, and again after a failed task.
"""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PACKAGES = ("pandas", "pyarrow", "pyspark.worker", "sparknet.spark")


def load() -> None:
    """Import them; one that does not import is told of by the task that needs it."""
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")  # threads end in forks
    with _prints_on_stderr():
        for name in PACKAGES:
            with suppress(Exception):
                importlib.import_module(name)
    import numpy as np

    os.register_at_fork(after_in_child=np.random.seed)  # as Python does for its own module random
    gc.freeze()


@contextmanager
def _prints_on_stderr() -> Iterator[None]:
    """Spark reads the daemon's port from its standard output."""
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


if __name__ == "__main__":
    from pyspark.daemon import manager

    load()
    manager()
