"""The sides of OpenVINO and ONNX Runtime: our net as an ONNX model, run for inference."""

from __future__ import annotations

import os
import sys
import tempfile
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.contests import Contest
from benchmarks.peers.nets import inference_net
from benchmarks.peers.side import Side, serve

CALIBRATED = 4
"""The batches of noise on which a model of eight bits is calibrated."""


def exported(contest: Contest, folder: Path) -> tuple[str, dict[str, Any]]:
    """The contest's net as an ONNX model of a fixed batch, and its inputs."""
    from benchmarks.peers.ours import fill
    from sparknet.caffe import Net
    from sparknet.caffe.weights_io import as_model
    from sparknet.onnx import write_model

    net = Net.from_proto(inference_net(contest))
    fill(net, contest)
    path = folder / f"{contest.name}.onnx"
    write_model(path, as_model(net._runtime), dynamic_batch=False)
    return str(path), {name: np.array(net.blobs[name].data) for name in net.inputs}


def noise(inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Batches like the inputs."""
    rng = np.random.default_rng(2)
    return [
        {name: values[rng.permutation(len(values))] for name, values in inputs.items()}
        for _ in range(CALIBRATED)
    ]


class OnnxSide(Side):
    """A library that runs ONNX models."""

    def load(self, contest: Contest, mode: str, precision: str, variant: str) -> dict[str, Any]:
        if mode != "inference":
            raise ValueError("it does not train")
        with tempfile.TemporaryDirectory() as folder:
            path, inputs = exported(contest, Path(folder))
            return {"version": self.open(path, inputs, precision)}

    def open(self, path: str, inputs: dict[str, Any], precision: str) -> str:
        """Prepare the model of a file with these inputs; returns the library's version."""
        self._inputs, self._threads = inputs, int(os.environ["OMP_NUM_THREADS"])
        return self._load(path, precision)

    @abstractmethod
    def output(self) -> Any:
        """What the last step computed first."""

    @abstractmethod
    def _load(self, path: str, precision: str) -> str:
        """Prepare the model of a file; returns the library's version."""


class OpenVINO(OnnxSide):
    """One stream on all threads; in eight bits as NNCF's post-training quantisation makes it."""

    def _load(self, path: str, precision: str) -> str:
        import openvino

        core = openvino.Core()
        model = core.read_model(path)
        if precision == "int8":
            import nncf

            data = nncf.Dataset(noise(self._inputs))
            model = nncf.quantize(model, data, subset_size=CALIBRATED)
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": str(self._threads),
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
        }
        self._request = core.compile_model(model, "CPU", settings).create_infer_request()
        for name, values in self._inputs.items():
            self._request.get_tensor(name).data[...] = values
        return str(openvino.__version__)

    def step(self) -> None:
        self._request.infer()

    def output(self) -> Any:
        return np.array(self._request.get_output_tensor(0).data)


class OnnxRuntime(OnnxSide):
    """The CPU's provider; in eight bits as its own static quantisation makes it."""

    def _load(self, path: str, precision: str) -> str:
        import onnxruntime

        if precision == "bf16":
            raise ValueError("the CPU's provider has no bfloat16")
        if precision == "int8":
            path = self._quantised(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        self._session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        return str(onnxruntime.__version__)

    def _quantised(self, path: str) -> str:
        from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
        from onnxruntime.quantization.shape_inference import quant_pre_process

        class Reader(CalibrationDataReader):  # type: ignore[misc]
            def __init__(self, batches: list[dict[str, Any]]) -> None:
                self._batches = iter(batches)

            def get_next(self) -> dict[str, Any] | None:
                return next(self._batches, None)

        prepared, made = f"{path}.prepared", f"{path}.int8"
        quant_pre_process(path, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            made,
            Reader(noise(self._inputs)),
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return made

    def step(self) -> None:
        self._outputs = self._session.run(None, self._inputs)

    def output(self) -> Any:
        return self._outputs[0]


SIDES = {"openvino": OpenVINO, "onnxruntime": OnnxRuntime}

if __name__ == "__main__":
    serve(SIDES[sys.argv[1]]())
