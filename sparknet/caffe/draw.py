"""pycaffe's `caffe.draw`, as DOT text for Graphviz (Caffe: python/caffe/draw.py)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sparknet.caffe import optional_modules
from sparknet.errors import FileError, SpecError, extra
from sparknet.graph.draw import DIRECTIONS, FORMATS, quote, render
from sparknet.proto import caffe_pb2

pydot = optional_modules.pydot

LAYER_STYLE_DEFAULT = {"shape": "record", "fillcolor": "#6495ED", "style": "filled"}
NEURON_LAYER_STYLE = {"shape": "record", "fillcolor": "#90EE90", "style": "filled"}
BLOB_STYLE = {"shape": "octagon", "fillcolor": "#E0E0E0", "style": "filled"}

_COLOURS = {
    "Convolution": "#FF5050",
    "Deconvolution": "#FF5050",
    "Pooling": "#FF9900",
    "InnerProduct": "#CC33FF",
}
_WEIGHTED = ("Convolution", "Deconvolution", "InnerProduct")
_TEXT = ("dot", "gv", "raw")

Net = caffe_pb2.NetParameter
Layer = caffe_pb2.LayerParameter


def get_pooling_types_dict() -> dict[int, str]:
    """Pooling method numbers → names."""
    methods = caffe_pb2.PoolingParameter.DESCRIPTOR.enum_types_by_name["PoolMethod"]
    return {value.number: value.name for value in methods.values}


def get_edge_label(layer: Layer) -> str:
    """Return the label of a layer's output: its batch size or number of outputs."""
    if layer.type == "Data":
        return f"Batch {layer.data_param.batch_size}"
    if layer.type in ("Convolution", "Deconvolution"):
        return str(layer.convolution_param.num_output)
    if layer.type == "InnerProduct":
        return str(layer.inner_product_param.num_output)
    return '""'


def get_layer_lr_mult(layer: Layer) -> tuple[float, float]:
    """Return the learning rate multipliers of a layer's weights and biases."""
    if layer.type not in _WEIGHTED:
        raise SpecError(f"layer '{layer.name}': {layer.type} has no learning rate multipliers")
    if len(layer.param) > 2:
        raise SpecError(f"layer '{layer.name}': {len(layer.param)} param entries, not 2")
    rates = [param.lr_mult for param in layer.param] + [1.0, 1.0]
    return rates[0], rates[1]


def get_layer_label(layer: Layer, rankdir: str, display_lrm: bool = False) -> str:
    """Return a layer's label in double quotes, as pydot wants it."""
    separator = " " if rankdir in ("TB", "BT") else r"\n"
    return f'"{separator.join(_description(layer, display_lrm))}"'


def _description(layer: Layer, display_lrm: bool) -> list[str]:
    kind, window = layer.type, None
    if layer.type == "Pooling":
        pooling = layer.pooling_param
        kind += f" {get_pooling_types_dict()[pooling.pool]}"
        window = (pooling.kernel_size, pooling.stride, pooling.pad)
    elif layer.type in ("Convolution", "Deconvolution"):
        options = layer.convolution_param
        window = ([*options.kernel_size, 1][0], [*options.stride, 1][0], [*options.pad, 0][0])
    lines = [layer.name, f"({kind})"]
    if window is not None:
        lines += [f"kernel size: {window[0]}", f"stride: {window[1]}", f"pad: {window[2]}"]
    if display_lrm and layer.type in _WEIGHTED:
        weights, biases = get_layer_lr_mult(layer)
        if weights or biases:
            lines.append(f"lr mult: {weights:.1f}, {biases:.1f}")
    return lines


def choose_color_by_layertype(layertype: str) -> str:
    """Return the fill colour of a layer's box."""
    return _COLOURS.get(layertype, "#6495ED")


def _style(layer: Layer) -> dict[str, str]:
    if list(layer.bottom) == list(layer.top) and len(layer.top) == 1:
        return NEURON_LAYER_STYLE
    return {**LAYER_STYLE_DEFAULT, "fillcolor": choose_color_by_layertype(layer.type)}


def _label(net: Net, phase: int | None) -> list[Layer]:
    return [layer for layer in net.layer if phase is None or _in_phase(layer, phase)]


def _in_phase(layer: Layer, phase: int) -> bool:
    if layer.include and layer.exclude:
        raise SpecError(f"layer '{layer.name}' has both include and exclude rules")
    if layer.include:
        return any(rule.phase == phase for rule in layer.include)
    return not any(rule.phase == phase for rule in layer.exclude)


def _edges(layer: Layer, label_edges: bool) -> Iterable[tuple[str, str, str]]:
    """(from, to, label): nodes are named ``NAME_TYPE`` and ``BLOB_blob``."""
    node = f"{layer.name}_{layer.type}"
    for bottom in layer.bottom:
        yield f"{bottom}_blob", node, ""
    label = get_edge_label(layer).strip('"') if label_edges else ""
    for top in layer.top:
        yield node, f"{top}_blob", label


def to_dot(
    caffe_net: Net,
    rankdir: str = "LR",
    label_edges: bool = True,
    phase: int | None = None,
    display_lrm: bool = False,
) -> str:
    """Return the net as DOT text: layers are boxes, blobs octagons.  (The name is ours.)"""
    if rankdir not in DIRECTIONS:
        raise SpecError(f"rankdir {rankdir!r} is none of {', '.join(DIRECTIONS)}")
    separator = " " if rankdir in ("TB", "BT") else "\n"
    nodes: dict[str, str] = {}
    edges: list[str] = []
    for layer in _label(caffe_net, phase):
        label = _record(separator.join(_description(layer, display_lrm)))
        nodes[f"{layer.name}_{layer.type}"] = _attributes(label, _style(layer))
        for blob in (*layer.bottom, *layer.top):
            nodes[f"{blob}_blob"] = _attributes(quote(blob), BLOB_STYLE)
        for source, target, text in _edges(layer, label_edges):
            edges.append(f"  {quote(source)} -> {quote(target)} [label={quote(text)}];")
    lines = [f"digraph {quote(caffe_net.name or 'Net')} {{", f"  rankdir={quote(rankdir)};"]
    lines += [f"  {quote(name)} [{attributes}];" for name, attributes in nodes.items()]
    return "\n".join([*lines, *edges, "}", ""])


def _attributes(label: str, style: dict[str, str]) -> str:
    return ", ".join([f"label={label}", *(f'{key}="{value}"' for key, value in style.items())])


def _record(text: str) -> str:
    """Return a label in a record shape, where braces, bars and angles would make compartments."""
    label = quote(text)
    for sign in "{}|<>":
        label = label.replace(sign, f"\\{sign}")
    return label


def get_pydot_graph(
    caffe_net: Net,
    rankdir: str,
    label_edges: bool = True,
    phase: int | None = None,
    display_lrm: bool = False,
) -> Any:
    """Return the same picture as a pydot graph, where pydot is installed."""
    with extra("pydot", "draw", "get_pydot_graph"):
        import pydot
    return pydot.graph_from_dot_data(to_dot(caffe_net, rankdir, label_edges, phase, display_lrm))[0]


def draw_net(
    caffe_net: Net,
    rankdir: str,
    ext: str = "png",
    phase: int | None = None,
    display_lrm: bool = False,
) -> bytes:
    """Return the picture as png, svg or pdf, or its DOT text for ``dot``, ``gv`` and ``raw``."""
    text = to_dot(caffe_net, rankdir, phase=phase, display_lrm=display_lrm)
    if ext in _TEXT:
        return text.encode()
    if ext not in FORMATS:
        raise SpecError(f"'{ext}' is none of the drawing formats {', '.join(_TEXT + FORMATS)}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"net.{ext}"
        render(text, path)
        return path.read_bytes()


def draw_net_to_file(
    caffe_net: Net,
    filename: str,
    rankdir: str = "LR",
    phase: int | None = None,
    display_lrm: bool = False,
) -> None:
    """Write the picture in the format that the file's suffix names."""
    path = Path(filename)
    picture = draw_net(caffe_net, rankdir, path.suffix[1:].lower(), phase, display_lrm)
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise FileError(filename, error.strerror or str(error)) from error
