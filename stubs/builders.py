"""sparknet/dsl/typed.pyi: a function with typed keywords for each layer type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sparknet.dsl import TYPES
from sparknet.dsl.builders import COMMON
from sparknet.dsl.fields import KNOWN, SHORTHANDS, groups_of, option_fields
from sparknet.proto import caffe_pb2
from sparknet.proto.message_fields import is_repeated

PATH = "dsl/typed.pyi"

HEAD = """# Written by python -m stubs from the layer types and proto/caffe.proto.

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import SupportsFloat, SupportsIndex, TypeAlias, TypedDict

from typing_extensions import Unpack

from sparknet.dsl.layer_spec import LayerSpec
from sparknet.dsl.net_params import NetParams
from sparknet.proto import caffe_pb2

Blobs: TypeAlias = str | LayerSpec | Iterable[str | LayerSpec]
Text: TypeAlias = str | PathLike[str]
Dict: TypeAlias = Mapping[str, object]
"""

_SCALARS = {"INT": "SupportsIndex", "UINT": "SupportsIndex", "BOOL": "bool", "STRING": "Text"}
_NETS = ("net", "train_net", "test_net")


def stub() -> str:
    solver = caffe_pb2.SolverParameter.DESCRIPTOR.fields
    names = (f'    "{name}",' for name in TYPES)
    lines = [HEAD, "__all__ = [", *names, "]", "", "class LayerOptions(TypedDict, total=False):"]
    lines += ["    bottom: Blobs", "    top: Blobs | None", "    tops: Blobs | None"]
    lines += ["    in_place: bool"]
    lines += [f"    {key}: {_several('SupportsFloat')} | None" for key in ("lr_mult", "decay_mult")]
    lines += _keys(KNOWN[name] for name in COMMON)
    lines += ["", "class SolverOptions(TypedDict, total=False):", *_keys(solver, _NETS)]
    lines += ["", "class SolverFields:", *_attributes(solver)]
    for name in TYPES:
        groups = (KNOWN[group] for group in groups_of(name))
        own = [*groups, *(field for _, field in option_fields(name).values())]
        lines += ["", *_layer(name, own)]
    return "\n".join(lines) + "\n"


def _layer(name: str, own: Iterable[Any]) -> Iterator[str]:
    options = f"{name}Options" if own else "LayerOptions"
    if own:
        yield f"class {options}(LayerOptions, total=False):"
        yield from _keys(own)
        yield ""
    words = f"name: str, bottoms: Blobs = (), **options: Unpack[{options}]"
    yield f"def {name}({words}) -> LayerSpec: ..."


def _keys(fields: Iterable[Any], nets: tuple[str, ...] = ()) -> Iterator[str]:
    for field in fields:
        net = " | NetParams" if field.name in nets else ""
        yield f"    {field.name}: {_taken(field)}{net} | None"


def _attributes(fields: Iterable[Any]) -> Iterator[str]:
    for field in fields:
        yield "    @property"
        yield f"    def {field.name}(self) -> {_given(field)}: ..."


def _several(kind: str) -> str:
    return f"{kind} | Iterable[{kind}]"


def _taken(field: Any) -> str:
    """What a keyword takes."""
    if field.message_type is not None:
        name = field.message_type.name
        kinds = ["Dict", f"caffe_pb2.{field.message_type.full_name.partition('.')[2]}"]
        if name == "BlobShape":
            kinds.append("Iterable[SupportsIndex]")
        elif name in SHORTHANDS:
            kinds += ["str", "SupportsIndex"] if name == "NetStateRule" else ["str"]
        kind = " | ".join(kinds)
    elif field.enum_type is not None:
        kind = "str | SupportsIndex"
    else:
        kind = _scalar(field)
    return _several(kind) if is_repeated(field) else kind


def _scalar(field: Any) -> str:
    for prefix, kind in _SCALARS.items():
        if any(
            getattr(field, name) == field.cpp_type
            for name in dir(field)
            if name.startswith(f"CPPTYPE_{prefix}")
        ):
            return f"{kind} | bytes" if field.type == field.TYPE_BYTES else kind
    return "SupportsFloat"


def _given(field: Any) -> str:
    """What reading a field gives."""
    if field.message_type is not None:
        kind = f"caffe_pb2.{field.message_type.full_name.partition('.')[2]}"
    elif field.enum_type is not None:
        kind = "int"
    else:
        names = {"SupportsIndex": "int", "Text": "str", "SupportsFloat": "float"}
        kind = names.get(_scalar(field), _scalar(field))
    return f"Sequence[{kind}]" if is_repeated(field) else kind
