"""BVLC Caffe's side, where a real pycaffe can be imported."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.peers.contests import Contest
from benchmarks.peers.nets import inference_net, training_solver
from benchmarks.peers.side import Side, serve


class BvlcCaffe(Side):
    _step: Callable[[], Any]

    def load(self, contest: Contest, mode: str, precision: str, variant: str) -> dict[str, Any]:
        os.environ.setdefault("GLOG_minloglevel", "2")
        import caffe

        from sparknet.proto import format_text

        if "sparknet" in caffe.__name__ or "sparknet" in str(caffe.__file__):
            raise ImportError("the caffe that can be imported is sparknet's own")
        caffe.set_mode_cpu()
        train = mode == "train"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "net.prototxt"
            if train:
                source = training_solver(contest)
                file.write_text(format_text(source.net_param))
                source.ClearField("net_param")
                source.net, source.solver_mode = str(file), 0
                settings = Path(folder) / "solver.prototxt"
                settings.write_text(format_text(source))
                solver = caffe.SGDSolver(str(settings))
                net, self._step = solver.net, lambda: solver.step(1)
            else:
                file.write_text(format_text(inference_net(contest)))
                net = caffe.Net(str(file), caffe.TEST)
                self._step = net.forward
        self._fill(net, contest)
        return {}

    def _fill(self, net: Any, contest: Contest) -> None:
        from benchmarks.peers.ours import fill

        fill(net, contest)

    def step(self) -> None:
        self._step()


if __name__ == "__main__":
    serve(BvlcCaffe())
