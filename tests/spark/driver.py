"""A driver in a process of its own: fits for whoever writes to its standard input.

A line of settings begins a fit; each event goes out as a line, and one comes back when it has
been looked at; at the end the result goes out.
"""

import gc
import hashlib
import json
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from benchmarks.digits import TRAINED
from benchmarks.papers import dynamic
from benchmarks.spark_strategies import frame
from sparknet.spark import Trainer
from sparknet.training.strategies import make_strategy
from tests.spark.digits import NET, pixels, solver
from tests.spark.java import quick
from tests.spark.recorder import recorded

SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": quick(),
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.cores.max": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.python.daemon.module": "sparknet.spark.worker_daemon",
}


def say(message):
    print(json.dumps(message), flush=True)


def on_event(event):
    say(event)
    sys.stdin.readline()


def counts() -> dict[str, int]:
    """What a run could leave in this process; PySpark's sockets go with what held them."""
    gc.collect()
    files = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.exists()]
    return {
        "threads": sum(thread.name.startswith("sparknet") for thread in threading.enumerate()),
        "sockets": sum(file.startswith("socket:") for file in files),
    }


def fit(
    session,
    resume=False,
    strategy="averaging",
    steps=80,
    more="",
    workers=2,
    recorder=None,
    lenet=None,
    path=None,
    **settings,
):
    """With ``lenet``, a seed, LeNet learns MNIST's digits instead, and is tested on others.

    The bits depend on the order of the rows: those of a file at ``path`` have one everywhere.
    """
    if isinstance(strategy, dict):
        strategy = make_strategy(**strategy)
    if lenet is not None:
        settings |= {"workers": workers, "steps": steps, "on_event": on_event}
        return outcome(learned(session, lenet, strategy, settings))
    net, columns = NET, {"data": "pixels", "label": "digit"}
    if recorder is not None:
        net, columns = recorded(NET, **recorder), {**columns, "number": "number"}
    trainer = Trainer(
        solver(steps, more, net),
        strategy,
        workers=workers,
        columns=columns,
        on_event=on_event,
        **settings,
    )
    data = pixels(session, 200) if path is None else session.read.parquet(path)
    return outcome(trainer.fit(data, resume=resume))


def learned(session, seed, strategy, settings):
    solver = dynamic.solver()
    solver.random_seed = seed
    trainer = Trainer(solver, strategy, validate_every=1 << 30, **settings)
    return trainer.fit(frame(session, slice(0, TRAINED)), frame(session, slice(TRAINED, None)))


def outcome(trained):
    weights = np.asarray(trained.weights.flat)
    return {
        "weights": hashlib.sha256(weights.tobytes()).hexdigest(),
        "outcome": asdict(trained.outcome),
    }


def main(url: str, settings: dict[str, str]) -> None:
    if url.startswith("sc://"):
        session = SparkSession.builder.remote(url).getOrCreate()
    else:
        builder = SparkSession.builder.master(url).appName("faults")
        for name, value in (SETTINGS | settings).items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
    for line in sys.stdin:
        try:
            result = fit(session, **json.loads(line))
        except (Exception, KeyboardInterrupt) as error:
            result = {"error": type(error).__name__, "message": str(error)}
        say({**result, "left": counts()})
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
