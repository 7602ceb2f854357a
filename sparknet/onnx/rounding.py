"""Eight bits on their way into a model: which values and weights are written as whole numbers."""

from __future__ import annotations

from sparknet.graph import Graph, Node
from sparknet.proto import caffe_pb2


class Rounding:
    """What a quantised net rounds: the values that its layers of eight bits read, and those that
    they make for such as do not mind."""

    def __init__(self, graph: Graph, given: caffe_pb2.Int8Parameter) -> None:
        self._graph = graph
        self._float32 = set(given.float32_layer)
        known = {one.blob: (one.step, one.is_signed) for one in given.values}
        self._steps = {
            blob: known[name] for blob, name in enumerate(graph.blob_names) if name in known
        }
        self._source: dict[int, int] = {}
        """What the copies that Split makes are copies of."""
        for node in graph.nodes:
            if node.layer.splits:
                bottom = node.bottom_ids[0]
                whole = self._source.get(bottom, bottom)
                self._source.update(dict.fromkeys(node.top_ids, whole))
        self._rounded = self._found() if known else set()

    def multiplies(self, node: Node) -> bool:
        """Whether a layer multiplies numbers of eight bits."""
        return (
            bool(self._steps)
            and node.name not in self._float32
            and node.layer.multiplies_int8(node.plan)
            and all(self._whole(blob) in self._steps for blob in node.bottom_ids)
        )

    def step_for(self, blob: int, node: Node) -> tuple[float, bool] | None:
        """What a layer reads rounded."""
        whole = self._whole(blob)
        if whole not in self._rounded or node.layer.splits or blob in node.top_ids:
            return None
        return self._steps[whole]

    def _whole(self, blob: int) -> int:
        return self._source.get(blob, blob)

    def _found(self) -> set[int]:
        readers: dict[int, list[Node]] = {}
        makers: dict[int, list[Node]] = {}
        for node in self._graph.nodes:
            if node.layer.splits:
                continue
            for blob in node.top_ids:
                makers.setdefault(blob, []).append(node)
            for blob in set(node.bottom_ids).difference(node.top_ids):
                readers.setdefault(self._whole(blob), []).append(node)
        found = set()
        for blob in self._steps:
            read = readers.get(blob, [])
            made = any(self.multiplies(node) for node in makers.get(blob, []))
            if any(self.multiplies(node) for node in read) or (
                made and read and all(_takes(node) for node in read)
            ):
                found.add(blob)
        return found


def _takes(node: Node) -> bool:
    return node.layer.tolerates_int8 or node.layer.passes_int8(node.plan)
