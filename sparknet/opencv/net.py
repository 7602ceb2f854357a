"""cv2.dnn.Net's methods, over `sparknet.caffe.Net` (OpenCV: dnn.hpp, src/net_impl.cpp)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any, TypeAlias

import numpy as np

from sparknet.caffe.net import Net as CaffeNet
from sparknet.errors import ArgumentError, LayerError, SpecError, WeightsError, warn
from sparknet.graph import build
from sparknet.layers import Shape
from sparknet.layers.layer import count
from sparknet.opencv import constants, flops, registered
from sparknet.opencv.importer import Arrays, Network, as_caffe
from sparknet.proto import Model, caffe_pb2
from sparknet.proto.blob_file import Array
from sparknet.proto.suggest import one_of

LayerId: TypeAlias = "str | int"


class LayerInfo:
    """cv2.dnn.Layer: a layer's name, type and weights; new ``blobs`` change the net."""

    preferableTarget = 0

    def __init__(self, net: Net, number: int) -> None:
        self._net, self._number = net, number
        self.name, self.type = "_input", ""
        if number:
            layer = net._network.layers[number - 1]
            self.name, self.type = layer.name, layer.type

    @property
    def blobs(self) -> tuple[Array, ...]:
        arrays = self._net._network.arrays[self._number - 1] if self._number else []
        return tuple(array for array in arrays if array is not None)

    @blobs.setter
    def blobs(self, blobs: Sequence[Any]) -> None:
        self._net._set_arrays(self._number, [np.array(blob, np.float32) for blob in blobs])

    def outputNameToIndex(self, outputName: str) -> int:
        """Return the number of an output; the inputs' are known by name."""
        if self._number:
            return 0
        names = list(self._net._network.inputs)
        return names.index(outputName) if outputName in names else -1


class Net:
    """A net as cv2.dnn.Net shows it: inputs are set, outputs are called after their layers.

    It is built when its inputs' sizes are known, and follows them when they change."""

    def __init__(self, network: Network | None = None) -> None:
        self._network = network or Network()
        self._shapes = dict(self._network.inputs)
        self._waiting: dict[str, Array] = {}
        self._net: CaffeNet | None = None
        self._device: str | None = None
        self._ticks = 0
        self._wanted: set[int] = set()
        """Numbers of the layers whose outputs the net keeps."""

    # -- inputs and outputs --------------------------------------------------------------

    def setInput(self, blob: Any, name: str = "", scalefactor: float = 1.0, mean: Any = ()) -> None:
        """Copy (blob - mean) * scalefactor into an input; each call may bring another shape."""
        key = self._input_name(name)
        array = np.asarray(blob)
        if array.dtype.kind not in "fuib":
            raise ArgumentError(f"setInput takes numbers; the blob is of {array.dtype}")
        if not (isinstance(mean, tuple) and not any(mean)) and np.any(mean):
            offsets = np.resize(np.append(np.float32(mean), np.zeros(4, np.float32)), 4)
            channels = array.shape[1] if array.ndim > 1 else 1
            shape = (-1, *[1] * (array.ndim - 2))
            array = array - offsets[:channels].reshape(shape)
        if self._net is None:
            self._shapes[key] = array.shape
            self._waiting[key] = np.multiply(array, scalefactor, dtype=np.float32)
            return
        target = self._net.blobs[key]
        if self._shapes[key] != array.shape:
            target.reshape(*array.shape)
            self._shapes[key] = array.shape
        if scalefactor == 1:
            np.copyto(target.data, array, casting="unsafe")
        else:
            np.multiply(array, np.float32(scalefactor), out=target.data, casting="unsafe")

    def _input_name(self, name: str) -> str:
        names = list(self._network.inputs)
        if name and name not in names:
            raise SpecError(f"setInput: the net has no input '{name}'{one_of(name, names)}")
        if not names:
            raise SpecError("setInput: the net has no inputs")
        return name or names[0]

    def setInputsNames(self, inputBlobNames: Sequence[str]) -> None:
        """Accept the inputs' own names; OpenCV renames them for nets that were built by hand."""
        for name in inputBlobNames:
            self._input_name(name)

    def setInputShape(self, inputName: str, shape: Sequence[int]) -> None:
        """Set an input's shape before its values come."""
        self.setInput(np.zeros(tuple(shape), np.float32), inputName)

    def forward(
        self,
        outBlobNames: str | Sequence[str] | None = None,
        outputBlobs: Any = None,
        *,
        outputName: str | None = None,
    ) -> Any:
        """Run up to a layer, by default the last, and return its output; for names a tuple."""
        names = outBlobNames if outputName is None else outputName
        if names is None or isinstance(names, str):
            number = self._number(names) if names else len(self._network.layers)
            return self._run([number])[0][0]
        return tuple(outputs[0] for outputs in self._run([self._number(name) for name in names]))

    def forwardAndRetrieve(
        self,
        outBlobNames: Sequence[str],
    ) -> tuple[tuple[Array, ...], ...]:
        """Return all outputs of each of these layers."""
        rows = self._run([self._number(name) for name in outBlobNames])
        return tuple(tuple(outputs) for outputs in rows)

    def _run(self, numbers: Sequence[int]) -> list[list[Array]]:
        net, start = self._ready_net(), perf_counter_ns()
        if not all(numbers):
            raise LayerError("_input", "forward() takes a layer; this one has the net's inputs")
        layers = [self._network.layers[number - 1] for number in numbers]
        if not self._wanted.issuperset(numbers):
            self._wanted.update(numbers)
            net._want(top for layer in layers for top in layer.top)
        try:
            net._forward(0, self._places[max(numbers)])
        except LayerError as error:
            if words := self._other_channels():
                raise SpecError(f"{error}{words}") from error
            raise
        outputs = [
            [self._output(layer, net.blobs[top].data) for top in layer.top] for layer in layers
        ]
        self._ticks = perf_counter_ns() - start
        return outputs

    def _other_channels(self) -> str:
        """Return words about the first input whose channels are not those of the prototxt."""
        for name, declared in self._network.inputs.items():
            shape = self._shapes[name]
            if declared[1:2] != shape[1:2] and min(len(declared), len(shape)) > 1:
                return f"; input '{name}' has {shape[1]} channels, the prototxt names {declared[1]}"
        return ""

    def _output(self, layer: caffe_pb2.LayerParameter, values: Array) -> Array:
        """Return a copy; boxes stand in order of their scores, before rows of zeros."""
        options = layer.detection_output_param
        if layer.type != "DetectionOutput" or options.keep_top_k < 1:
            return np.array(values)
        rows = np.zeros(self._boxes_shape(layer, self._shapes), np.float32)
        boxes = values[0, 0][values[0, 0, :, 1] >= 0]  # Caffe marks an image without boxes by -1
        rows[0, 0, : len(boxes)] = boxes[np.lexsort((-boxes[:, 2], boxes[:, 0]))]
        return rows

    def _boxes_shape(self, layer: caffe_pb2.LayerParameter, shapes: dict[str, Shape]) -> Shape:
        images = next(iter(shapes.values()))[0]
        return 1, 1, layer.detection_output_param.keep_top_k * images, 7

    # -- the net below -------------------------------------------------------------------

    def _ready_net(self) -> CaffeNet:
        if self._net is None:
            self._net = self._build(self._shapes)
            for name, values in self._waiting.items():
                self._net.blobs[name].data[...] = values
            self._waiting.clear()
        return self._net

    def _build(self, shapes: dict[str, Shape]) -> CaffeNet:
        net = self._net_message(shapes)
        pairs = zip(self._network.layers, self._network.arrays, strict=True)
        arrays: list[Arrays] = [[] for _ in shapes]
        arrays += [[] if registered.is_registered(layer.type) else own for layer, own in pairs]
        try:
            built = CaffeNet.from_proto(
                net,
                caffe_pb2.TEST,
                keep_blobs=False,
                models=[Model(net, arrays)],
                device=self._device,
            )
        except WeightsError as error:
            cure = "; give readNetFromCaffe the caffemodel of this net, or set getLayer().blobs"
            raise SpecError(f"{error}{self._other_channels() or cure}") from error
        places = {name: place for place, name in enumerate(built._layer_names)}
        names = enumerate(self.getLayerNames(), start=1)
        self._places = {number: places[name] for number, name in names}
        return built

    def _net_message(self, shapes: dict[str, Shape]) -> caffe_pb2.NetParameter:
        """Return the net with these inputs, and with layers of registered classes."""
        if not self._network.layers:
            raise SpecError("the net is empty: read one with readNetFromCaffe")
        net = caffe_pb2.NetParameter(name=self._network.name)
        for name, shape in shapes.items():
            if not shape:
                raise SpecError(f"input '{name}' has no size yet: call setInput first")
            source = net.layer.add(name=f"input#{name}", type="Input", top=[name])
            source.input_param.shape.add(dim=shape)
        for layer, stored in zip(self._network.layers, self._network.arrays, strict=True):
            net.layer.append(as_caffe(registered.python_layer(layer, stored), stored))
        return net

    def _set_arrays(self, number: int, arrays: list[Array]) -> None:
        if not number:
            raise LayerError("_input", "the inputs have no weights")
        before = self._network.arrays[number - 1]
        for place, (array, old) in enumerate(zip(arrays, before, strict=False)):
            if old is not None and array.size == old.size:  # (1, 313) for a Scale of 313 channels
                arrays[place] = array.reshape(old.shape)
        self._network.arrays[number - 1] = list(arrays)
        if self._net is not None:
            self._keep_inputs()

    def _keep_inputs(self) -> None:
        """Build again at the next pass, with the values that the inputs have now."""
        if self._net is not None:
            blobs = self._net.blobs
            self._waiting = {name: blobs[name].data.copy() for name in self._network.inputs}
            self._net = None
            self._wanted.clear()

    # -- layers --------------------------------------------------------------------------

    def empty(self) -> bool:
        return not self._network.layers

    def getLayerNames(self) -> tuple[str, ...]:
        return tuple(layer.name for layer in self._network.layers)

    def getLayerTypes(self) -> tuple[str, ...]:
        return tuple(sorted({"__NetInputLayer__", *(layer.type for layer in self._network.layers)}))

    def getLayersCount(self, layerType: str) -> int:
        return sum(layer.type == layerType for layer in self._network.layers)

    def getLayerId(self, layer: str) -> int:
        return self._network.number(layer)

    def getLayer(self, layerId: LayerId) -> LayerInfo:
        return LayerInfo(self, self._number(layerId))

    def _number(self, layer: LayerId) -> int:
        names = self.getLayerNames()
        if isinstance(layer, str):
            number = self._network.number(layer)
            if number < 0:
                raise SpecError(f"the net has no layer '{layer}'{one_of(layer, names)}")
            return number
        number = int(layer)
        if not 0 <= number <= len(names):
            raise SpecError(f"the net has no layer {number}; it has {len(names)}")
        return number

    def getUnconnectedOutLayers(self) -> np.ndarray[Any, Any]:
        return np.array(self._network.ends(), np.int32)

    def getUnconnectedOutLayersNames(self) -> tuple[str, ...]:
        return tuple(self._network.layers[number - 1].name for number in self._network.ends())

    def getParam(self, layer: LayerId, numParam: int = 0) -> Array:
        blobs = self.getLayer(layer).blobs
        if not 0 <= numParam < len(blobs):
            raise SpecError(f"layer {layer!r} has {len(blobs)} weight blobs, no number {numParam}")
        return np.array(blobs[numParam])

    def setParam(self, layer: LayerId, numParam: int, blob: Any) -> None:
        info = self.getLayer(layer)
        blobs = list(info.blobs)
        blobs[numParam : numParam + 1] = [np.array(blob, np.float32)]
        info.blobs = blobs

    # -- what it costs -------------------------------------------------------------------

    def getFLOPS(self, *args: Any) -> int:
        """Return the operations of a net, or of the layer whose number comes first."""
        number, shapes = self._layer_and_shapes(args)
        graph = build(self._net_message(shapes), caffe_pb2.TEST)
        works = {node.name: flops.of(graph, node) for node in graph.nodes}
        if number is None:
            return sum(works.values())
        return works.get(self.getLayerNames()[number - 1], 0)

    def getMemoryConsumption(self, *args: Any) -> tuple[int, int]:
        """Return the bytes of weights and of blobs, each blob in memory of its own."""
        number, shapes = self._layer_and_shapes(args)
        sizes = self._sizes(shapes)
        numbers = range(1, len(self._network.layers) + 1) if number is None else [number]
        layers = [self._network.layers[one - 1] for one in numbers]
        arrays = [array for one in numbers for array in self._network.arrays[one - 1]]
        weights = sum(4 * array.size for array in arrays if array is not None)
        tops = [top for layer in layers for top in layer.top]
        inputs = list(self._network.inputs) if number is None else []
        return weights, sum(4 * count(sizes[name]) for name in (*inputs, *tops))

    def getLayersShapes(self, *args: Any) -> tuple[Any, Any, Any]:
        """Return the layers' numbers, and the shapes of their inputs and outputs."""
        _, shapes = self._layer_and_shapes(args)
        sizes = {name: np.array(shape, np.int32) for name, shape in self._sizes(shapes).items()}
        inputs = tuple(sizes[name] for name in self._network.inputs)
        bottoms = [tuple(sizes[name] for name in layer.bottom) for layer in self._network.layers]
        tops = [tuple(sizes[name] for name in layer.top) for layer in self._network.layers]
        numbers = np.arange(len(tops) + 1, dtype=np.int32)
        return numbers, (inputs, *bottoms), (inputs, *tops)

    def _sizes(self, shapes: dict[str, Shape]) -> dict[str, Shape]:
        """Return the shapes of all blobs, by name, for these of the inputs."""
        graph = build(self._net_message(shapes), caffe_pb2.TEST)
        sizes = dict(zip(graph.blob_names, graph.blob_shapes, strict=True))
        for layer in self._network.layers:
            if layer.detection_output_param.keep_top_k > 0:
                sizes[layer.top[0]] = self._boxes_shape(layer, shapes)
        return sizes

    def _layer_and_shapes(self, args: Sequence[Any]) -> tuple[int | None, dict[str, Shape]]:
        """Return a layer's number, if it comes first, and the inputs' shapes."""
        number = self._number(args[0]) if len(args) > 1 or not np.ndim(args[0]) else None
        shapes = args[-1] if np.ndim(args[-1][0]) else [args[-1]]
        sizes = [tuple(map(int, shape)) for shape in shapes]
        return number, self._shapes | dict(zip(self._network.inputs, sizes, strict=False))

    def getPerfProfile(self) -> tuple[int, Any]:
        """Return the nanoseconds of the last pass, and of each layer in one that runs now."""
        if self._net is None or not self._ticks:
            raise SpecError("getPerfProfile: call forward() first")
        self._net.time_layers(True)
        self._net._forward(0, len(self._net.layers) - 1)
        times, _ = self._net.layer_times()
        self._net.time_layers(False)
        layers = [times[place] for _, place in sorted(self._places.items())]
        return self._ticks, np.array(layers, np.float64).reshape(-1, 1)

    # -- where it computes ---------------------------------------------------------------

    def setPreferableBackend(self, backendId: int) -> None:
        """Accept any of OpenCV's; the engine here is sparknet's."""

    def setPreferableTarget(self, targetId: int) -> None:
        """Compute on a GPU for a CUDA target, where PyTorch has one; else on the CPU."""
        device = "cuda:0" if targetId in constants.CUDA_TARGETS and _has_cuda() else None
        if device is None and targetId != constants.DNN_TARGET_CPU:
            name = constants.TARGETS.get(targetId, str(targetId))
            warn(f"{name}: the net computes in float32 on the CPU")
        if device != self._device:
            self._keep_inputs()
            self._device = device

    def enableFusion(self, fusion: bool) -> None:
        """Accept: layers are computed together where that changes no result."""

    def enableWinograd(self, useWinograd: bool) -> None:
        """Accept: kernels are chosen by measurement."""

    def dump(self) -> str:
        """Return the layers as a graph for Graphviz."""
        lines = [f'\t"{name}" [label="{name}"]' for name in self._network.inputs]
        for layer in self._network.layers:
            lines.append(f'\t"{layer.name}" [label="{{{layer.name}\\n{layer.type}}}" shape=record]')
            for bottom in layer.bottom:
                lines.append(f'\t"{bottom.rpartition("#")[0] or bottom}" -> "{layer.name}"')
        return "\n".join(["digraph G {", *lines, "}", ""])

    def dumpToFile(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_text(self.dump(), encoding="utf-8")


def _has_cuda() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())
