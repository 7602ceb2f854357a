"""Nets for the tests of graph/: a few words become a NetParameter."""

from sparknet.graph import Graph, build
from sparknet.layers.layer import TRAIN
from sparknet.proto import parse_net


def graph(*layers: str, phase: int = TRAIN, net: str = "") -> Graph:
    """The graph of layers written as the inside of ``layer { }``."""
    return build(parse_net(text(*layers, net=net)), phase)


def text(*layers: str, net: str = "") -> str:
    return net + "\n" + "\n".join(f"layer {{ {layer} }}" for layer in layers)


def source(name: str, *dims: int) -> str:
    """An input blob and its layer, ``in_NAME``."""
    shape = " ".join(f"dim: {dim}" for dim in dims)
    return f'name: "in_{name}" type: "Input" top: "{name}" input_param {{ shape {{ {shape} }} }}'


def layer(kind: str, name: str, bottoms: str = "", tops: str = "", more: str = "") -> str:
    """``layer("ReLU", "r", "x", "y")``; several blobs are separated by spaces."""
    blobs = [f'bottom: "{blob}"' for blob in bottoms.split()]
    blobs += [f'top: "{blob}"' for blob in tops.split()]
    return f'name: "{name}" type: "{kind}" {" ".join(blobs)} {more}'


def dense(name: str, bottom: str, top: str, outputs: int = 2, more: str = "") -> str:
    """An InnerProduct layer."""
    options = f"inner_product_param {{ num_output: {outputs} }} {more}"
    return layer("InnerProduct", name, bottom, top, options)


def needing_backward(net: Graph) -> list[str]:
    return [node.name for node in net.nodes if node.needs_backward]
