"""Batches made ahead, and the end of the process that they were made for."""

import subprocess
import sys

LEAVES = """
import threading
from sparknet.loaders.batches import Prefetch

class Maker:
    def make(self, number, spare):
        if number == 2:
            making.set()
        return number

    def close(self):
        print("closed", flush=True)

making = threading.Event()
batches = Prefetch(lambda number: Maker())
assert batches.take() == 0
batches.give_back(None)
making.wait()
print("end", flush=True)
"""


def test_threads_end_before_the_interpreter_does():
    """One that is stopped in the middle of h5py keeps its lock, which the exit waits for."""
    ran = subprocess.run(
        [sys.executable, "-c", LEAVES], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.split() == ["end", "closed"]
