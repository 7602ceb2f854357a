"""`sparknet show`: prints a net as a table of layers, shapes and parameters."""

from __future__ import annotations

import json
import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sparknet.cli import flags, net_file
from sparknet.cli.verb import Verb

if TYPE_CHECKING:
    from sparknet.graph import Graph


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_net(parser)
    parser.add_argument("--splits", action="store_true", help="show the automatic Split layers")
    parser.add_argument(
        "--engine",
        choices=("native", "torch"),
        default="native",
        help="torch: also name the layers that PyTorch does not compute (docs/gpu.md)",
    )
    flags.add_json(parser)


def _execute(chosen: Namespace) -> int:
    from sparknet.graph import summary

    net_file.take_words(chosen)
    with _marking():
        model = net_file.open_model_file(chosen.model, chosen, describes=True)
        graph = net_file.graph(chosen, "skip", model)
    axes = "" if model is None else model.metadata.get("inputs", "")
    if chosen.json:
        facts = _as_dict(graph, chosen.splits)
        if chosen.engine == "torch":
            facts["untranslated"] = _untranslated(graph)
        print(json.dumps(facts | ({"axes": axes.splitlines()} if axes else {}), indent=1))
    else:
        print(summary(graph, splits=chosen.splits))
        if axes:
            print(axes)
        if chosen.engine == "torch":
            from sparknet.torch import untranslated_message

            print(untranslated_message(_untranslated(graph)) or "PyTorch computes all layers")
    return 0


def _untranslated(graph: Graph) -> dict[str, str]:
    """Names and types of layers that PyTorch does not compute."""
    from sparknet.torch import untranslated

    hosts = {node.type for node in graph.nodes if node.layer.host}
    return untranslated(((node.name, node.type) for node in graph.nodes), hosts)


@contextmanager
def _marking() -> Iterator[None]:
    """Fields that are left out are named on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:  # a field that was left out may be why a net does not build
            for warning in caught:
                print(f"sparknet show: {warning.message}", file=sys.stderr)


def _as_dict(graph: Graph, splits: bool) -> dict[str, Any]:
    return {
        "name": graph.name,
        "parameters": graph.param_count,
        "parameter_bytes": graph.param_bytes,
        "blob_bytes": graph.blob_bytes,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "left_out": [vars(layer) for layer in graph.left_out],
        "layers": [
            _layer(graph, node) for node in graph.nodes if splits or not node.layer.is_split
        ],
    }


def _layer(graph: Graph, node: Any) -> dict[str, Any]:
    """Return a layer as JSON; a parameter that an earlier layer owns has ``shared``."""
    shapes = (list(graph.blob_shapes[blob]) for blob in node.top_ids)
    return {
        "name": node.name,
        "type": node.type,
        "bottoms": list(node.bottoms),
        "tops": dict(zip(node.tops, shapes, strict=True)),
        "parameters": [{"shape": list(ref.shape), "shared": not ref.owned} for ref in node.params],
    }


VERB = Verb(
    "show", "Print a net's layers, output shapes and parameter counts.", _arguments, _execute
)
