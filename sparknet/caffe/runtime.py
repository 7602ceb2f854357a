"""A graph in the engine: its memory, passes and reshapes, and the hosts between native layers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib import import_module
from threading import RLock
from typing import Any

import numpy as np

from sparknet.caffe import host_layers, int8
from sparknet.caffe.blob import Blob, EngineBlob
from sparknet.caffe.parameters import EngineParameters
from sparknet.caffe.precision import Precision, available
from sparknet.devices import resolve_device
from sparknet.errors import LayerError, SpecError, warn
from sparknet.graph import Graph, Node
from sparknet.graph.graph import Plans
from sparknet.layers import Shape
from sparknet.layers.host import Host
from sparknet.layers.layer import TRAIN
from sparknet.layers.python import PythonHost
from sparknet.layers.user_layer import BlobVec, RawBlobVec
from sparknet.native import NDArray
from sparknet.native.alone import alone
from sparknet.native.engine import NetEngine
from sparknet.proto import caffe_pb2


class Runtime:
    """The memory and the passes of one net."""

    def __init__(
        self,
        graph: Graph,
        seed: int,
        precision: Precision = "float32",
        keep_blobs: bool = True,
        params: NDArray | None = None,
        fills: bool = True,
        device: str | None = None,
    ) -> None:
        """Use the values in ``params``, else the fillers', or 0 unless it ``fills``."""
        self._lock = RLock()
        self.nodes = list(graph.nodes)
        self._graph: Graph | None = graph
        self._built = graph
        self.keep_blobs = keep_blobs
        self.seed = seed
        self.generation = 0
        self._clocks = host_layers.HostClocks()
        self.device = resolve_device(device)
        self.precision = available(precision, self.device)
        self.engine: NetEngine = import_module("sparknet.torch").make_engine(
            self.device, graph.phase == TRAIN, seed, self.precision
        )
        self.parameters = EngineParameters(graph, self.engine, params)
        if fills:
            self.parameters.fill(seed)
        self.blobs: list[Blob] = [
            EngineBlob(self, self.engine.add_blob(name, shape))
            for name, shape in zip(graph.blob_names, graph.blob_shapes, strict=True)
        ]
        self._note_shapes()
        self._make_layers()
        if not keep_blobs:
            self._share_blobs()
        self.segments = list(host_layers.segments_of(self.nodes, self._hosts))
        back = self.nodes if self.has_backward else ()
        self._backups = host_layers.Backups(back, self._hosts, self.blobs)
        runs = sum(segment.host is None for segment in self.segments)
        # One native run computes all gradients, and no user code sees them earlier.
        learns = any(host.params for host in self._hosts.values())
        self._clears_unseen = runs == 1 and not self.user_layers() and not learns
        if self.nodes:
            self.engine.prepare(0, len(self.nodes) - 1)
        if message := import_module("sparknet.torch").untranslated_message(self.engine.fallbacks()):
            warn(message)
        for number in self._hosts:
            self._reshape_host(number)
        self.int8_param: caffe_pb2.Int8Parameter | None = None
        """What the blobs are rounded to in eight bits, where that is known."""
        if self.precision == "int8" and graph.phase == TRAIN:
            raise SpecError("precision='int8' is for the test phase: train in float32 or bf16")
        if graph.parameter.HasField("int8_param"):
            self.use_int8(graph.parameter.int8_param)

    # -- building ------------------------------------------------------------------------

    @alone
    def share_params(self, other: Runtime) -> None:
        """Use the memory of another net's parameters; its flat buffer if all are there."""
        for one in (self, other):
            one.parameters.check(one.nodes, one.params)
        theirs = dict(zip(other.graph.layers, other.params, strict=True))
        for node, own in zip(self.nodes, self.params, strict=True):
            for ref, mine, source in zip(node.params, own, theirs.get(node.name, ()), strict=False):
                self.parameters.share(ref, mine, source)
        self.parameters.share_buffer(other.parameters)
        # Their kernels were made for the memory of before.
        self._stale.update(range(len(self.nodes)))
        self._ran.clear()

    def _make_layers(self) -> None:
        self.params: list[BlobVec] = []
        self._hosts: dict[int, Host] = {}
        for number, node in enumerate(self.nodes):
            own = BlobVec(self.parameters.blob(ref.learnable, ref.shape) for ref in node.params)
            self.params.append(own)
            ids = [self.parameters.number(ref) for ref in node.params]
            kind = "Host" if node.layer.host else node.type
            self.engine.add_layer(kind, node.name, node.bottom_ids, node.top_ids, ids)
            self._describe(number, node)
            if node.layer.host:
                self._hosts[number] = node.layer.host(node, own, self.seed + number)
            if isinstance(self._hosts.get(number), PythonHost | None):
                self._ran.add(number)  # its kernel begins with zeros

    def _share_blobs(self) -> None:
        """Inputs, outputs and losses keep their memory; the other blobs share theirs."""
        self.engine.share_blobs()
        sources = {top for node in self.nodes if not node.bottom_ids for top in node.top_ids}
        names = self.graph.blob_names
        results = map(names.index, [*self.graph.outputs, *self.graph.loss_weights])
        for blob in sources.union(results):
            self.engine.want_blob(blob)

    @property
    def has_backward(self) -> bool:
        """Nets for testing whose blobs share memory have no backward pass."""
        return self.keep_blobs or self.graph.phase == TRAIN

    def _describe(self, number: int, node: Node) -> None:
        if not node.layer.host:
            self.engine.set_options(number, node.plan.values)
        back = self.has_backward
        learns = [back and ref.needs_gradient for ref in node.params]
        propagate = [back and down for down in node.propagate_down]
        self.engine.set_gradients(number, back and node.needs_backward, propagate, learns)
        self.engine.set_loss_weights(number, node.loss_weights)

    def user_layers(self) -> dict[int, Any]:
        """Return the users' own objects, by layer number."""
        hosts = self._hosts.items()
        return {number: host.instance for number, host in hosts if isinstance(host, PythonHost)}

    def _of(self, ids: Sequence[int]) -> RawBlobVec:
        return RawBlobVec(self.blobs[blob] for blob in ids)

    @alone
    def use_int8(self, given: caffe_pb2.Int8Parameter) -> None:
        """Round to these steps from now on, if the precision is int8; else only keep them."""
        int8.check(given)
        self.int8_param = caffe_pb2.Int8Parameter()
        self.int8_param.CopyFrom(given)
        if self.precision != "int8":
            return
        self._ran.clear()
        int8.use(self.engine, self.graph, given)
        if self.nodes:
            self.engine.prepare(0, len(self.nodes) - 1)

    # -- shapes --------------------------------------------------------------------------

    def _note_shapes(self) -> None:
        self.shapes = list(self._built.blob_shapes)
        self._users: list[list[int]] = [[] for _ in self.shapes]
        for number, node in enumerate(self.nodes):
            for blob in {*node.bottom_ids, *node.top_ids}:
                self._users[blob].append(number)
        self._ran: set[int] = set()
        """Numbers of the layers that a forward pass has come through with the shapes of now."""
        self._plans = Plans()
        self._stale: set[int] = set()
        """Numbers of the layers to prepare for the shapes of now before they run (Caffe:
        layer.hpp, Forward)."""

    @property
    def graph(self) -> Graph:
        """The graph with the shapes that the blobs have now."""
        if self._graph is None:
            shapes = tuple(self.shapes)
            self._graph = replace(self._built, nodes=tuple(self.nodes), blob_shapes=shapes)
        return self._graph

    @alone
    def touch(self, blob: int, shape: Shape) -> None:
        """Give a blob another shape, as its owner or from outside."""
        if shape != self.shapes[blob]:
            self.engine.extend_blob(blob, shape)
            self._changed(blob, shape)

    def _changed(self, blob: int, shape: Shape) -> None:
        self.shapes[blob] = shape
        self._stale.update(self._users[blob])
        self._ran.difference_update(self._users[blob])
        self._graph = None
        self.generation += 1

    @alone
    def reshape(self) -> None:
        """Every layer adopts the current shapes of its bottoms (Caffe: Net::Reshape)."""
        for segment in self.segments:
            if segment.host is None:
                self._follow(segment.first, segment.last)
            else:
                self._reshape_host(segment.first)

    def _follow(self, first: int, last: int) -> None:
        """Let layers of the engine adopt their bottoms' shapes; all stay stale if one refuses."""
        if not self._stale:
            return
        followed = []
        for number in range(first, last + 1):
            if number in self._stale:
                self._follow_layer(number)
                self.engine.set_options(number, self.nodes[number].plan.values)
                followed.append(number)
        if followed:
            self.engine.prepare(followed[0], followed[-1])
            self._stale.difference_update(followed)

    def _follow_layer(self, number: int) -> None:
        node = self.nodes[number] = self._plans.follow(number, self.nodes[number], self.shapes)
        for blob, shape in zip(node.top_ids, node.plan.tops, strict=True):
            if shape != self.shapes[blob]:
                self.engine.reshape_blob(blob, shape)
                self._changed(blob, shape)

    def _reshape_host(self, number: int) -> None:
        host, node = self._hosts[number], self.nodes[number]
        # A user's layer says in its `reshape` what follows from its bottoms.
        if number in self._stale and not isinstance(host, PythonHost):
            self._follow_layer(number)
            if node.bottom_ids:  # what a source makes follows from its data alone
                host.node = self.nodes[number]
        with self._naming(number):
            host.reshape(self._of(node.bottom_ids), self._of(node.top_ids))
        self._host_is_ready(number)

    def _naming(self, number: int) -> AbstractContextManager[None]:
        return host_layers.layer_errors(self._hosts[number], self.nodes[number], self.shapes)

    def _host_is_ready(self, number: int) -> None:
        """Note that the layer has given its tops their shapes."""
        if number in self._stale:
            self._stale.discard(number)
            if any(self.nodes[number].loss_weights):
                self.engine.prepare(number, number)

    def _look_at_tops(self, number: int) -> None:
        """Read the shapes that the engine has given a layer's tops."""
        for blob in self.nodes[number].top_ids:
            shape = self.engine.blob_shape(blob)
            if shape != self.shapes[blob]:
                self._changed(blob, shape)
                self._stale.discard(number)
                self._ran.add(number)

    # -- passes --------------------------------------------------------------------------

    def forward(self, first: int, last: int) -> float:
        with self._lock:
            if self.parameters.apart:
                self.parameters.check(self.nodes, self.params)
            if self.precision == "int8" and self.int8_param is None:
                int8.refuse_without_steps(self.graph)
            loss = 0.0
            for segment in self.segments:
                begin, end = max(first, segment.first), min(last, segment.last)
                if begin > end:
                    continue
                if segment.host is not None:
                    with self._clocks.timed(host_layers.FORWARD, begin):
                        loss += self._forward_host(segment.host, begin)
                    continue
                self._follow(begin, end)
                loss += self.engine.forward(begin, end)
                if len(self._ran) < len(self.nodes):
                    self._ran.update(range(begin, end + 1))
                if self.nodes[end].layer.has_dynamic_tops:
                    self._look_at_tops(end)
            return loss

    @property
    def is_settled(self) -> bool:
        """Whether a pass from the first layer to the last is one call of the engine."""
        return not self._stale and not self.parameters.apart and len(self._ran) == len(self.nodes)

    @property
    def is_one_call(self) -> bool:
        """Whether no layer computes outside the engine, or leaves shapes to be read there."""
        if len(self.segments) != 1 or self.segments[0].host or not self.engine.views_stay:
            return False
        return not self.nodes[-1].layer.has_dynamic_tops

    def _forward_host(self, host: Host, number: int) -> float:
        self._reshape_host(number)
        node = self.nodes[number]
        tops = self._of(node.top_ids)
        self._ran.discard(number)
        with self._naming(number):
            host.forward(self._of(node.bottom_ids), tops)
        self._ran.add(number)
        self._host_is_ready(number)
        self._backups.take(number)
        return sum(
            float(np.vdot(top.data.astype(np.float64), top.diff))
            for top, weight in zip(tops, node.loss_weights, strict=True)
            if weight
        )

    @alone
    def backward(self, first: int, last: int, overwrite: bool = False) -> None:
        """Run layers first down to last; ``overwrite`` gradients instead of adding to them."""
        if not self.has_backward:
            raise SpecError("a net for testing made with keep_blobs=False has no backward pass")
        self.parameters.check(self.nodes, self.params)
        self._check_ran(first, last)
        if overwrite and not self._clears_unseen:
            self.clear_param_diffs()
            overwrite = False
        for segment in reversed(self.segments):
            begin, end = min(first, segment.last), max(last, segment.first)
            if begin < end:
                continue
            if segment.host is None:
                self.engine.backward(begin, end, overwrite)
            elif self.nodes[begin].needs_backward:
                with self._clocks.timed(host_layers.BACKWARD, begin):
                    self._backward_host(segment.host, begin)

    @alone
    def forward_backward(self) -> float:
        """Return a pass forward and one back, whose gradients start from zero; the loss."""
        count = len(self.nodes)
        *before, own = self.segments
        learns = any(self.nodes[segment.first].needs_backward for segment in before)
        if learns or own.host or not self._clears_unseen or self.nodes[-1].layer.has_dynamic_tops:
            loss = self.forward(0, count - 1)
            self.backward(count - 1, 0, overwrite=True)
            return loss
        loss = self.forward(0, own.first - 1)
        self.parameters.check(self.nodes, self.params)
        self._follow(own.first, own.last)
        loss += self.engine.forward_backward(own.first, own.last)
        self._ran.update(range(own.first, count))
        return loss

    def _check_ran(self, first: int, last: int) -> None:
        """Refuse gradients of what no forward pass has computed with the shapes of now."""
        if len(self._ran) == len(self.nodes):
            return
        for number in range(first, last - 1, -1):
            node = self.nodes[number]
            if node.needs_backward and number not in self._ran:
                raise LayerError(
                    node.name,
                    f"{node.type}: no forward pass has come through it with the shapes that it has "
                    "now, and a backward pass needs one: run it forward first",
                )

    def _backward_host(self, host: Host, number: int) -> None:
        node = self.nodes[number]
        tops, bottoms = self._of(node.top_ids), self._of(node.bottom_ids)
        with self._naming(number), self._backups.used(number):
            host.backward(tops, list(node.propagate_down), bottoms)

    # -- clocks --------------------------------------------------------------------------

    def time(self, on: bool) -> None:
        """Start the clocks of all layers from 0, or stop them.  They stand still at first."""
        self.engine.time(on)
        self._clocks.run(on)

    def times(self) -> tuple[list[float], list[float]]:
        """Nanoseconds forward and backward, one number a layer, since the clocks were started."""
        passes = self.engine.times()
        self._clocks.put_into(passes)
        return passes

    def reseed(self, seed: int) -> None:
        self.seed = seed
        self.engine.seed(seed)
        for number, host in self._hosts.items():
            host.reseed(seed + number)

    def close(self) -> None:
        """End the threads and close the files of layers that live in Python."""
        for host in self._hosts.values():
            host.close()

    def clear_param_diffs(self) -> None:
        self.parameters.clear_diffs()
