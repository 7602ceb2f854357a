"""A net's layers as plain dictionaries, which files keep and drawings show."""

from __future__ import annotations

from typing import Any

from sparknet.errors import SparkNetError
from sparknet.graph.build import build_in_state
from sparknet.graph.graph import Graph
from sparknet.layers.layer import count
from sparknet.proto import caffe_pb2


def outline(net: caffe_pb2.NetParameter) -> list[dict[str, Any]]:
    """Name, type, bottoms, tops, output shape and parameters of each layer."""
    try:
        return outline_of(build_in_state(net))
    except SparkNetError:  # data will decide its shapes
        return [
            {"name": one.name, "type": one.type, "bottoms": [*one.bottom], "tops": [*one.top]}
            for one in net.layer
        ]


def outline_of(graph: Graph) -> list[dict[str, Any]]:
    """Return the same of a net that has shapes."""
    names = list(graph.blob_names)  # a copy that a split makes has the name of what it copies
    for node in graph.nodes:
        if node.layer.is_split:
            for copy in node.top_ids:
                names[copy] = names[node.bottom_ids[0]]
    return [
        {
            "name": node.name,
            "type": node.type,
            "bottoms": [names[blob] for blob in node.bottom_ids],
            "tops": list(node.tops),
            "shape": [list(graph.blob_shapes[blob]) for blob in node.top_ids[:1]],
            "parameters": sum(count(ref.shape) for ref in node.params if ref.owned),
        }
        for node in graph.nodes
        if not node.layer.is_split
    ]
