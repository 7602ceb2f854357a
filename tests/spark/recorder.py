"""A layer that takes its time, and notes which records a worker has trained on."""

import json
import os
import time
from pathlib import Path
from typing import Any

INPUT = 'layer { name: "number" type: "Input" top: "number" input_param { shape { dim: 20 } } }'
LAYER = """layer { name: "recorder" type: "Python" bottom: "number" top: "recorded"
  python_param { module: "tests.spark.recorder" layer: "Recorder" param_str: '%s' } }"""


def recorded(net: str, folder: str, seconds: float, slow: float = 0.0) -> str:
    """The net, each of whose steps takes ``seconds``; in one process ``slow`` seconds."""
    said = json.dumps({"folder": folder, "seconds": seconds, "slow": slow})
    return net + INPUT + LAYER % said


def steps(folder: Path) -> dict[int, list[list[int]]]:
    """By process: the numbers of the records of each of its steps."""
    return {
        int(path.stem): [json.loads(line) for line in path.read_text().splitlines()]
        for path in folder.glob("*.json")
    }


class Recorder:
    blobs: Any
    param_str: str

    def __init__(self, parameter):
        del parameter

    def setup(self, bottom, top):
        said = json.loads(self.param_str)
        self.folder, self.seconds, self.slow = Path(said["folder"]), said["seconds"], said["slow"]

    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        if self.slow:
            self._be_slow(self.slow)
        time.sleep(self.seconds)
        with (self.folder / f"{os.getpid()}.json").open("a") as file:
            file.write(json.dumps([int(one) for one in bottom[0].data.ravel()]) + "\n")

    def _be_slow(self, seconds: float) -> None:
        """If no other process is: the driver only sets the net up, and makes no step."""
        self.slow = 0.0
        try:
            (self.folder / "slow").open("x").close()
            self.seconds = seconds
        except FileExistsError:
            pass

    def backward(self, top, propagate_down, bottom):
        pass
