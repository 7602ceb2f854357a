"""Random schedules of killed and new machines of Spark: python -m tests.spark.schedules

A standalone cluster on loopback starts with three machines.  Each run of four workers loses some
and gets others, and ends with one SHA-256 of its weights, that of the run in virtual time.
"""

import argparse
import logging
import random
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sparknet.training.strategies import make_strategy
from sparknet.training.virtual import simulate
from tests.spark.cluster import Cluster, Driver, Event, cluster
from tests.spark.digits import records, solver
from tests.training.schedules import digest

WORKERS, STEPS, MACHINES = 4, 400, 3
STRATEGIES = ("averaging", "diloco", "allreduce")
ADAM = 'type: "Adam"'
EVENTS = {"lost": "lost", "joined": "join"}


def write_rows(path):
    """Write the rows as one file of one partition, and return them as arrays."""
    images, labels = records(200)
    rows = {"pixels": [image.tobytes() for image in images], "digit": labels}
    pq.write_table(pa.table(rows), path)
    return {"data": images.astype(np.float32), "label": labels}


class Disturber:
    """Kills machines after some rounds, and adds others after some."""

    def __init__(self, standalone: Cluster, seed: int, rounds: int) -> None:
        self._standalone, self._random = standalone, random.Random(seed)
        kinds = ["kill", *self._random.choices(("kill", "add"), k=3)]
        self._due = dict(zip(self._random.sample(range(2, rounds), 4), kinds, strict=True))
        self.story: list[str] = []

    def __call__(self, event: Event) -> None:
        if (word := EVENTS.get(event["event"])) is not None:
            self.story.append(word)
        due = self._due.pop(event["round"], None) if event["event"] == "round" else None
        machines = self._standalone.machines()
        if due == "kill" and len(machines) > 1:
            self._random.choice(machines).kill()
            self.story.append("kill")
        elif due is not None:
            self._standalone.add_worker()
            self.story.append("add")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5, help="schedules of each strategy")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first one")
    chosen, wrong = parser.parse_args(), 0
    logging.getLogger("sparknet").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name, cluster(Path(name)) as standalone:
        path = Path(name) / "rows.parquet"
        arrays = write_rows(path)
        run: dict[str, Any] = {"workers": WORKERS, "steps": STEPS}
        for strategy in STRATEGIES:
            made = make_strategy(strategy, steps=4)
            expected = digest(simulate(solver(STEPS, ADAM), arrays, strategy=made, **run))
            print(f"{strategy} in virtual time: {expected}", flush=True)
            for seed in range(chosen.seed, chosen.seed + chosen.count):
                while len(standalone.machines()) < MACHINES:
                    standalone.add_worker()
                disturber = Disturber(standalone, seed, STEPS // 4)
                with closing(Driver(standalone.url, Path(name), spark_cores_max="8")) as driver:
                    settings = {"path": str(path), "more": ADAM, "min_hosts": 1, "deadline": 20}
                    result = driver.fit(
                        disturber, strategy={"chosen": strategy, "steps": 4}, **run, **settings
                    )
                sha = result.get("weights", result.get("message"))
                wrong += sha != expected
                print(f"{strategy} {seed}: {sha} ({', '.join(disturber.story)})", flush=True)
    print(f"{wrong} runs ended with other weights")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
