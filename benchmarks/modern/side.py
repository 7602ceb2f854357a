"""One library with one model, in a process of its own."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.onnx_sides import SIDES
from benchmarks.peers.side import peak_memory, run_steps, serve


class Ours:
    """sparknet's test phase, as SparkModel runs it."""

    def open(self, path: str, inputs: dict[str, Any], precision: str) -> str:
        import sparknet
        from sparknet.caffe import TEST, Net
        from sparknet.caffe.int8 import Calibration
        from sparknet.caffe.weights_io import copy_model
        from sparknet.onnx import read_model

        warnings.simplefilter("ignore")
        model = read_model(path)
        if precision == "int8":
            net = self._filled(Net.from_proto(model.net, TEST, trusted=True), model, inputs)
            net._forward(0, len(net.layers) - 1)
            found = Calibration(net.graph)
            found.note({name: net.blobs[name].data for name in found.blobs})
            model.net.int8_param.CopyFrom(found.done())
        options: dict[str, Any] = {} if precision == "float32" else {"precision": precision}
        net = Net.from_proto(model.net, TEST, keep_blobs=False, trusted=True, **options)
        self._net = self._filled(net, model, inputs)
        copy_model(net._runtime, model)
        return str(sparknet.__version__)

    def _filled(self, net: Any, model: Any, inputs: dict[str, Any]) -> Any:
        from sparknet.caffe.weights_io import copy_model

        copy_model(net._runtime, model)
        for name, values in inputs.items():
            net.blobs[name].data[...] = values
        return net

    def step(self) -> None:
        self._net._forward(0, len(self._net.layers) - 1)

    def output(self) -> Any:
        return np.array(self._net.blobs[self._net.outputs[0]].data)


def answer(side: Any, request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "open":
        path = Path(request["path"])
        inputs = dict(np.load(path.with_suffix(".npz")))
        version = side.open(str(path), inputs, request["precision"])
        side.step()
        np.save(request["output"], side.output())
        return {"version": version}
    run_steps(side, 1)
    return {"ms": run_steps(side, request["steps"]), "memory": peak_memory()}


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    libraries: dict[str, Any] = {"sparknet": Ours, **SIDES}
    serve(libraries[sys.argv[1]](), answer)
